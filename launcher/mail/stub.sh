#!/bin/sh
# Stands for every program that sends mail. Starts no program and reads no input; of what it was called with it shows the name alone.
trap '' PIPE
LC_ALL=C
left=${0##*/}
name=
while [ -n "$left" ] && [ "${#name}" -lt 64 ]; do
    rest=${left#?}
    one=${left%"$rest"}
    case $one in
        [\ -~]) name=$name$one ;;
        *) name=$name'?' ;;
    esac
    left=$rest
done
printf '%s\n' "agent-sandbox: $name (arguments: $#): no mail is sent from inside this jail. Nothing was read, nothing was sent.
To an AI agent: this is policy and not a fault; there is nothing to repair or to configure. Every mailer and every other route
(SMTP, a web API, a job's mail) gives the same answer: do not try another. If a message has to go out, tell the user what it
should say, and ask them to send it. (\`agent-sandbox explain mail.stubs\` tells which setting it is.)" >&2
exit 77
