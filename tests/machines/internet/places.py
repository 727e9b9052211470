"""Who is where: addresses and names of the made internet, and of the host beside it."""

from __future__ import annotations

DOMAIN = "example.org"
WEB, WEB6 = "93.184.216.34", "2606:2800:220:1::34"
NAME_SERVER, NAME_SERVER6 = "93.184.216.53", "2606:2800:220:1::53"
PUBLIC_DNS = "8.8.8.8"
ONLY_6 = "2606:2800:220:1::66"
# Places that no jail may reach; the machine's own network leads to each.
METADATA, METADATA6 = "169.254.169.254", "fd00:ec2::254"
PRIVATE = ("10.20.30.40", "172.20.1.1", "192.168.7.7", "100.64.1.1")
PRIVATE6 = "fd00:20::1"
LINK_LOCAL6 = "fe80::34"
# The host's own end of the cable; its other neighbours are the internet's.
HOST, HOST6 = "203.0.113.7", "2001:db8:7::7"
ROUTER, ROUTER6 = "203.0.113.1", "2001:db8:7::1"

# What stands for IPv4 addresses in IPv6, as if a gateway brought it there: 203.0.113.7, 127.0.0.1, 169.254.169.254.
HOST_NAT64, HOST_6TO4, HOST_TRANSLATED, HOST_TEREDO = "64:ff9b::cb00:7107", "2002:cb00:7107::1", "::ffff:0:cb00:7107", "2001:0:cb00:7107::1"
LOOPBACK_NAT64, METADATA_NAT64 = "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"
AZURE = "168.63.129.16"  # its metadata
EMBEDDED = (HOST_NAT64, HOST_6TO4, HOST_TRANSLATED, HOST_TEREDO, LOOPBACK_NAT64, METADATA_NAT64)

ADDRESSES = (WEB, NAME_SERVER, PUBLIC_DNS, METADATA, *PRIVATE, WEB6, NAME_SERVER6, ONLY_6, METADATA6, PRIVATE6, AZURE, *EMBEDDED)
TRICKS = "example.net"  # where names lead to places that they should not
NAMES = {  # every name below DOMAIN leads to WEB and WEB6
    f"six.{TRICKS}": (ONLY_6,),
    f"inside.{TRICKS}": (PRIVATE[0],),
    f"inside6.{TRICKS}": (PRIVATE6,),
    f"metadata.{TRICKS}": (METADATA,),
    f"loopback.{TRICKS}": ("127.0.0.1",),
    f"own.{TRICKS}": (HOST,),
    f"mixed.{TRICKS}": (PRIVATE[0], WEB),  # one that may be dialled, and one that may not
    f"half.{TRICKS}": ("2606:2800:220:1::dead", WEB),  # nobody is at the first, and nobody says so
    f"mapped.{TRICKS}": ("::ffff:127.0.0.1",),
    "dns.google": (PUBLIC_DNS,),
    "cloudflare-dns.com": (PUBLIC_DNS,),
    "pastebin.com": (WEB,),
    "hooks.slack.com": (WEB,),
}
SUBJECTS = (DOMAIN, f"*.{DOMAIN}", "dns.google", "cloudflare-dns.com", "pastebin.com", "hooks.slack.com")  # of the servers' certificate

ABSTRACT = "agent-sandbox-test"  # the host's; such names are of a network namespace
HTTP, HTTPS, HTTP_ELSEWHERE = 80, 443, 8080
SMTP, SUBMISSION, SMTPS = 25, 587, 465
DNS, UDP_ECHO = 53, 7
FREE_PORTS = (40000, 40399)  # from which the host's kernel takes any that is free, such as that of Landlock's proxy
PROXY_PORTS = (3128, *range(FREE_PORTS[0], FREE_PORTS[1] + 1))  # the web answers at those of every proxy
GREETING_PORTS = (22, 23, 853, 2525, 6817)  # SSH, telnet, DNS over TLS, mail, Slurm: a greeting stands for them
