/* attempt FILTER HOW NUMBER [ARGUMENT]...
 *
 * Loads the seccomp filter in the file FILTER ("-": none), makes one system call and prints its result and errno.
 * HOW: "native" makes it as this machine's programs do; "int80" as i386 programs do;
 *      "tty" as "native", with a fresh controlling terminal as first and a byte of memory as third argument.
 * Exits with 3 if it did not get as far as the call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int done, const char *what)
{
    if (!done) {
        perror(what);
        exit(3);
    }
}

static void load(const char *path)
{
    static struct sock_filter code[BPF_MAXINSNS];
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, code, sizeof code);
    need(size > 0, path);
    struct sock_fprog program = {.len = size / sizeof code[0], .filter = code};
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

static int terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    need(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "pty");
    if (fork() != 0) { /* only a process that leads no group can begin a session */
        int status;
        wait(&status);
        exit(WEXITSTATUS(status));
    }
    need(setsid() >= 0, "setsid");
    int slave = open(ptsname(master), O_RDWR);
    need(slave >= 0, "terminal");
    return slave;
}

static long int80(const unsigned long *a)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(a[0]), "b"(a[1]), "c"(a[2]), "d"(a[3]) : "memory");
    errno = result < 0 ? -result : 0;
    return result < 0 ? -1 : result;
#else
    (void)a;
    need(0, "no int 0x80 on this machine");
    return -1;
#endif
}

int main(int count, char **words)
{
    unsigned long a[7] = {0};
    char byte = '\n';
    need(count >= 4 && count <= 10, "usage");
    for (int i = 3; i < count; i++)
        a[i - 3] = strtoul(words[i], NULL, 0);
    if (strcmp(words[2], "tty") == 0) {
        a[1] = terminal();
        a[3] = (unsigned long)&byte;
    }
    if (strcmp(words[1], "-") != 0)
        load(words[1]);
    errno = 0;
    long result = strcmp(words[2], "int80") == 0 ? int80(a) : syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    printf("%ld %d\n", result, errno);
    return 0;
}
