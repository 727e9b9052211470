/* families
 *
 * Tries to make every kind of socket and of socket pair, and prints one line each: call, family, type, protocol, and "OK" or
 * the name of the error. Families and types without a common name are numbers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAMILIES 46 /* AF_MCTP is the last one with a number, 45 */

struct named {
    int number;
    const char *name;
};

static const struct named types[] = {
    {SOCK_STREAM, "STREAM"}, {SOCK_DGRAM, "DGRAM"}, {SOCK_RAW, "RAW"}, {SOCK_RDM, "RDM"},
    {SOCK_SEQPACKET, "SEQPACKET"}, {SOCK_DCCP, "DCCP"}, {SOCK_PACKET, "PACKET"}, {0, "0"}, {7, "7"}, {11, "11"},
};
static const struct named protocols[] = {
    {0, "0"}, {1, "ICMP"}, {6, "TCP"}, {17, "UDP"}, {33, "DCCP"}, {58, "ICMPV6"}, {132, "SCTP"}, {136, "UDPLITE"},
    {255, "RAW"}, {256, "SMC"}, {262, "MPTCP"},
};
static const struct named netlink[] = {
    {0, "ROUTE"}, {2, "USERSOCK"}, {4, "SOCK_DIAG"}, {5, "NFLOG"}, {6, "XFRM"}, {8, "ISCSI"}, {9, "AUDIT"}, {10, "FIB_LOOKUP"},
    {11, "CONNECTOR"}, {12, "NETFILTER"}, {15, "KOBJECT_UEVENT"}, {16, "GENERIC"}, {18, "SCSITRANSPORT"}, {20, "RDMA"}, {21, "CRYPTO"},
};
static const struct named families[] = {
    {AF_UNSPEC, "UNSPEC"}, {AF_UNIX, "UNIX"}, {AF_INET, "INET"}, {AF_INET6, "INET6"}, {AF_NETLINK, "NETLINK"}, {AF_PACKET, "PACKET"},
    {AF_RDS, "RDS"}, {AF_CAN, "CAN"}, {AF_TIPC, "TIPC"}, {AF_BLUETOOTH, "BLUETOOTH"}, {AF_ALG, "ALG"}, {AF_VSOCK, "VSOCK"}, {43, "SMC"},
    {44, "XDP"}, {45, "MCTP"},
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *family_name(int family)
{
    static char number[12];
    for (size_t i = 0; i < COUNT(families); i++)
        if (families[i].number == family)
            return families[i].name;
    snprintf(number, sizeof number, "%d", family);
    return number;
}

static void report(const char *call, int family, const char *type, const char *protocol, int failed)
{
    printf("%s %s %s %s %s\n", call, family_name(family), type, protocol, failed ? strerrorname_np(errno) : "OK");
}

static void attempt(int family, struct named type, struct named protocol)
{
    int pair[2];
    int one = socket(family, type.number, protocol.number);
    report("socket", family, type.name, protocol.name, one < 0);
    if (one >= 0)
        close(one);
    int failed = socketpair(family, type.number, protocol.number, pair);
    report("socketpair", family, type.name, protocol.name, failed);
    if (!failed) {
        close(pair[0]);
        close(pair[1]);
    }
}

int main(void)
{
    for (int family = 0; family < FAMILIES; family++) {
        const struct named *list = family == AF_NETLINK ? netlink : protocols;
        size_t count = family == AF_NETLINK ? COUNT(netlink) : COUNT(protocols);
        for (size_t type = 0; type < COUNT(types); type++)
            for (size_t protocol = 0; protocol < count; protocol++)
                attempt(family, types[type], list[protocol]);
    }
    return 0;
}
