/* writes make TREE            a target for each act, in the new directory TREE, made as it is needed outside
 * writes try TREE OWN         each act on its target, with files of its own in the directory OWN
 * writes victim               a process to be attacked: prints how it can be reached, then the name of the act for each signal,
 *                             and "done" for SIGRTMAX, which comes after all that were sent before
 * writes attack FACTS...      each act on the process with those facts
 *
 * One line an act: its name, and "OK" or the name of the error. Every act is made by a process of its own, so that none is in
 * the way of the next. An act that would be harmful if it worked (mount, swapon) is one that no ordinary user can do anyway.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
enum { SETXATTRAT = 463, REMOVEXATTRAT = 466, FILE_GETATTR = 468, FILE_SETATTR = 469, IO_URING_SETUP = 425, OPEN_TREE = 428 };
enum { NEITHER = 3 }; /* the access mode that neither reads nor writes */
static const struct timespec epoch[2];

static const char *own; /* a directory where everything is allowed */
static const char *own_file(void)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/mine", own);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    return path;
}

static const char *own_new(void)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/new", own);
    unlink(path);
    return path;
}

static const char *by_descriptor(int fd)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* A descriptor of the target, or the end of this act with the error of opening it. */
static int opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        _exit(errno);
    return fd;
}

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strncpy(name.sun_path, path, sizeof name.sun_path - 1);
    return name;
}

/* ---- opening, making, moving, removing ---- */
#define ACT(name) static int name(const char *path)
ACT(open_read) { return open(path, O_RDONLY); }
ACT(open_write) { return open(path, O_WRONLY); }
ACT(open_append) { return open(path, O_WRONLY | O_APPEND); }
ACT(open_read_write) { return open(path, O_RDWR); }
ACT(open_neither) { return open(path, NEITHER); }
ACT(open_truncate) { return open(path, O_RDONLY | O_TRUNC); }
ACT(open_truncate_neither) { return open(path, NEITHER | O_TRUNC); }
ACT(open_create) { return open(path, O_WRONLY | O_CREAT, 0600); }
ACT(open_create_read) { return open(path, O_RDONLY | O_CREAT, 0600); }
ACT(open_unnamed) { return open(path, O_TMPFILE | O_RDWR, 0600); }
ACT(open_by_descriptor) { return open(by_descriptor(opened(path, O_PATH)), O_WRONLY); }
ACT(create) { return creat(path, 0600); }

struct open_how_ { unsigned long flags, mode, resolve; };
static int openat2_(const char *path, unsigned long flags)
{
    struct open_how_ how = {.flags = flags};
    return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}
ACT(openat2_write) { return openat2_(path, O_WRONLY); }
ACT(openat2_truncate) { return openat2_(path, O_RDONLY | O_TRUNC); }
ACT(truncate_) { return truncate(path, 1); }
ACT(fallocate_) { return fallocate(opened(path, O_RDWR), 0, 0, 4096); }
ACT(fallocate_read_only) { return fallocate(opened(path, O_RDONLY), 0, 0, 4096); }
ACT(map_shared) { return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, opened(path, O_RDONLY), 0) == MAP_FAILED ? -1 : 0; }
ACT(unlink_) { return unlink(path); }
ACT(unlinkat_) { return unlinkat(AT_FDCWD, path, 0); }
ACT(rmdir_) { return rmdir(path); }
ACT(unlinkat_directory) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
ACT(mkdir_) { return mkdir(path, 0700); }
ACT(mkdirat_) { return mkdirat(AT_FDCWD, path, 0700); }
ACT(mknod_file) { return mknod(path, S_IFREG | 0600, 0); }
ACT(mknod_fifo) { return mknod(path, S_IFIFO | 0600, 0); }
ACT(mknod_socket) { return mknod(path, S_IFSOCK | 0600, 0); }
ACT(mknod_device) { return mknod(path, S_IFCHR | 0600, 0); } /* the number 0:0, which is nobody's, any user may make */
ACT(symlink_) { return symlink("nowhere", path); }
ACT(symlinkat_) { return symlinkat("nowhere", AT_FDCWD, path); }
ACT(link_in) { return link(own_file(), path); }
ACT(link_out) { return link(path, own_new()); }
ACT(link_out_by_descriptor) { return linkat(AT_FDCWD, by_descriptor(opened(path, O_PATH)), AT_FDCWD, own_new(), AT_SYMLINK_FOLLOW); }
ACT(rename_in) { return rename(own_file(), path); }
ACT(rename_over) { return rename(own_file(), path); }
ACT(rename_out) { return rename(path, own_new()); }
ACT(rename_exchange) { return renameat2(AT_FDCWD, own_file(), AT_FDCWD, path, RENAME_EXCHANGE); }
ACT(rename_within)
{
    char other[PATH_MAX];
    snprintf(other, sizeof other, "%s-new", path);
    return rename(path, other);
}

/* ---- modes, owners, times, attributes ---- */
ACT(chmod_) { return chmod(path, 0640); }
ACT(chmod_by_descriptor) { return chmod(by_descriptor(opened(path, O_PATH)), 0640); }
ACT(fchmod_) { return fchmod(opened(path, O_RDONLY), 0640); }
ACT(fchmod_neither) { return fchmod(opened(path, NEITHER), 0640); }
ACT(fchmodat_) { return syscall(SYS_fchmodat, AT_FDCWD, path, 0640); }
ACT(fchmodat2_) { return syscall(SYS_fchmodat2, AT_FDCWD, path, 0640, 0); }
ACT(fchmodat2_empty) { return syscall(SYS_fchmodat2, opened(path, O_PATH), "", 0640, AT_EMPTY_PATH); }
ACT(chown_) { return chown(path, getuid(), getgid()); }
ACT(lchown_) { return lchown(path, getuid(), getgid()); }
ACT(fchown_) { return fchown(opened(path, O_RDONLY), getuid(), getgid()); }
ACT(fchownat_) { return fchownat(AT_FDCWD, path, getuid(), getgid(), 0); }
ACT(fchownat_empty) { return fchownat(opened(path, O_PATH), "", getuid(), getgid(), AT_EMPTY_PATH); }
ACT(utime_) { return utime(path, &(struct utimbuf){0, 0}); }
ACT(utimes_) { return utimes(path, (struct timeval[2]){{0, 0}, {0, 0}}); }
#ifndef SYS_futimesat
#define SYS_futimesat -1 /* newer machines have it not: ENOSYS */
#endif
ACT(futimesat_) { return syscall(SYS_futimesat, AT_FDCWD, path, (struct timeval[2]){{0, 0}, {0, 0}}); }
ACT(utimensat_) { return utimensat(AT_FDCWD, path, epoch, 0); }
ACT(utimensat_now) { return utimensat(AT_FDCWD, path, NULL, 0); }
ACT(utimensat_link) { return utimensat(AT_FDCWD, path, epoch, AT_SYMLINK_NOFOLLOW); }
ACT(utimensat_empty) { return utimensat(opened(path, O_PATH), "", epoch, AT_EMPTY_PATH); }
ACT(futimens_) { return futimens(opened(path, O_RDONLY), epoch); }
ACT(setxattr_) { return setxattr(path, "user.new", "x", 1, 0); }
ACT(lsetxattr_) { return lsetxattr(path, "user.new", "x", 1, 0); }
ACT(fsetxattr_) { return fsetxattr(opened(path, O_RDONLY), "user.new", "x", 1, 0); }
ACT(setxattr_by_descriptor) { return setxattr(by_descriptor(opened(path, O_PATH)), "user.new", "x", 1, 0); }
ACT(removexattr_) { return removexattr(path, "user.old"); }
ACT(lremovexattr_) { return lremovexattr(path, "user.old"); }
ACT(fremovexattr_) { return fremovexattr(opened(path, O_RDONLY), "user.old"); }
ACT(setxattrat_)
{
    struct { unsigned long value; unsigned size, flags; } new = {(unsigned long)"x", 1, 0};
    return syscall(SETXATTRAT, AT_FDCWD, path, 0, "user.new", &new, sizeof new);
}
ACT(removexattrat_) { return syscall(REMOVEXATTRAT, AT_FDCWD, path, 0, "user.old"); }
ACT(file_setattr_)
{
    struct { unsigned long flags; unsigned extent, nextents, project, cow; } all = {0};
    if (syscall(FILE_GETATTR, AT_FDCWD, path, &all, sizeof all, 0) < 0)
        return -1;
    all.flags |= 0x80; /* FS_XFLAG_NODUMP */
    return syscall(FILE_SETATTR, AT_FDCWD, path, &all, sizeof all, 0);
}
static int set_flags(int fd)
{
    long flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return -1;
    flags |= FS_NODUMP_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}
ACT(flags_set) { return set_flags(opened(path, O_RDONLY)); }
ACT(flags_set_neither) { return set_flags(opened(path, NEITHER)); }
ACT(fsxattr_set)
{
    struct fsxattr all;
    int fd = opened(path, O_RDONLY);
    if (ioctl(fd, FS_IOC_FSGETXATTR, &all) < 0)
        return -1;
    all.fsx_xflags |= FS_XFLAG_NODUMP;
    return ioctl(fd, FS_IOC_FSSETXATTR, &all);
}
ACT(version_set) { return ioctl(opened(path, O_RDONLY), FS_IOC_SETVERSION, &(int){7}); }
ACT(verity_enable)
{
    struct fsverity_enable_arg all = {.version = 1, .hash_algorithm = 1, .block_size = 4096};
    return ioctl(opened(path, O_RDONLY), FS_IOC_ENABLE_VERITY, &all);
}
ACT(encryption_policy) { return ioctl(opened(path, O_RDONLY), FS_IOC_SET_ENCRYPTION_POLICY, &(struct fscrypt_policy_v1){0}); }
ACT(lock_exclusive) { return flock(opened(path, O_RDONLY), LOCK_EX | LOCK_NB); }
ACT(lease) { return fcntl(opened(path, O_RDONLY), F_SETLEASE, F_RDLCK); }

/* ---- sockets and watches ---- */
ACT(bind_)
{
    struct sockaddr_un name = address(path);
    return bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name);
}
ACT(connect_)
{
    struct sockaddr_un name = address(path);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name);
}
ACT(connect_by_descriptor)
{
    struct sockaddr_un name = address(by_descriptor(opened(path, O_PATH)));
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name);
}
ACT(send_datagram)
{
    struct sockaddr_un name = address(path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (void *)&name, sizeof name);
}
ACT(send_datagram_of_pair)
{
    struct sockaddr_un name = address(path);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
        return -1;
    if (sendto(pair[0], "x", 1, 0, (void *)&name, sizeof name) < 0)
        return -1;
    char byte; /* what a pair that stays one was given goes to the other end, whatever the address */
    errno = EISCONN;
    return recv(pair[1], &byte, 1, MSG_DONTWAIT) == 1 ? -1 : 0;
}
ACT(watch_inotify) { return inotify_add_watch(inotify_init(), path, IN_ALL_EVENTS); }
ACT(watch_fanotify)
{
    int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, 0);
    return fd < 0 ? -1 : fanotify_mark(fd, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, path);
}
ACT(watch_dnotify) { return fcntl(opened(path, O_RDONLY | O_DIRECTORY), F_NOTIFY, DN_MODIFY); }
struct handle { struct file_handle head; unsigned char bytes[MAX_HANDLE_SZ]; };
static int take_handle(const char *path, struct handle *handle)
{
    int mount;
    handle->head.handle_bytes = MAX_HANDLE_SZ;
    return name_to_handle_at(AT_FDCWD, path, &handle->head, &mount, 0);
}
ACT(handle_take) { return take_handle(path, &(struct handle){0}); }
ACT(handle_open)
{
    struct handle handle = {0};
    take_handle(path, &handle); /* refused, the call below shows that it is refused as well */
    return open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY);
}

/* ---- what no ordinary user can do ---- */
ACT(mount_tmpfs) { return mount("none", path, "tmpfs", 0, NULL); }
ACT(mount_bind) { return mount(own, path, NULL, MS_BIND, NULL); }
ACT(unmount) { return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW); }
ACT(open_tree_clone) { return syscall(OPEN_TREE, AT_FDCWD, path, 1); }
ACT(pivot_root_) { return syscall(SYS_pivot_root, path, path); }
ACT(chroot_) { return chroot(path); }
ACT(acct_) { return acct(path); }
ACT(swapon_) { return swapon(path, 0); }
ACT(quota_set) { return quotactl(QCMD(Q_SETQUOTA, USRQUOTA), path, getuid(), (char *)&(struct dqblk){0}); }
ACT(user_namespace) { (void)path; return unshare(CLONE_NEWUSER); }
ACT(mount_in_user_namespace) { return unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? -1 : mount("none", path, "tmpfs", 0, NULL); }
ACT(io_uring) { char memory[256] = {0}; (void)path; return syscall(IO_URING_SETUP, 1, memory); }
ACT(keyring_add) { (void)path; return syscall(SYS_add_key, "user", "agent-sandbox-test", "x", 1, -3 /* the session's */); }

/* ---- looking ---- */
ACT(stat_) { return stat(path, &(struct stat){0}); }
ACT(list) { return opened(path, O_RDONLY | O_DIRECTORY); }
ACT(getxattr_) { char value[16]; return getxattr(path, "user.old", value, sizeof value); }

enum target { FILE_, FOLDER, NOTHING, SOCKET }; /* sockets are made by whoever listens */
static const struct {
    const char *name;
    int (*act)(const char *);
    enum target target;
} acts[] = {
    {"open-write", open_write, FILE_}, {"open-append", open_append, FILE_}, {"open-read-write", open_read_write, FILE_},
    {"open-truncate", open_truncate, FILE_}, {"open-truncate-neither", open_truncate_neither, FILE_},
    {"open-create", open_create, NOTHING}, {"open-create-read", open_create_read, NOTHING}, {"open-unnamed", open_unnamed, FOLDER},
    {"open-by-descriptor", open_by_descriptor, FILE_}, {"creat", create, FILE_}, {"creat-new", create, NOTHING},
    {"openat2-write", openat2_write, FILE_}, {"openat2-truncate", openat2_truncate, FILE_}, {"truncate", truncate_, FILE_},
    {"fallocate", fallocate_, FILE_}, {"fallocate-read-only", fallocate_read_only, FILE_}, {"map-shared", map_shared, FILE_},
    {"unlink", unlink_, FILE_}, {"unlinkat", unlinkat_, FILE_}, {"rmdir", rmdir_, FOLDER}, {"unlinkat-directory", unlinkat_directory, FOLDER},
    {"mkdir", mkdir_, NOTHING}, {"mkdirat", mkdirat_, NOTHING}, {"mknod-file", mknod_file, NOTHING}, {"mknod-fifo", mknod_fifo, NOTHING},
    {"mknod-socket", mknod_socket, NOTHING}, {"mknod-device", mknod_device, NOTHING}, {"symlink", symlink_, NOTHING},
    {"symlinkat", symlinkat_, NOTHING}, {"link-in", link_in, NOTHING}, {"link-out", link_out, FILE_},
    {"link-out-by-descriptor", link_out_by_descriptor, FILE_}, {"rename-in", rename_in, NOTHING}, {"rename-over", rename_over, FILE_},
    {"rename-out", rename_out, FILE_}, {"rename-exchange", rename_exchange, FILE_}, {"rename-within", rename_within, FILE_},
    {"chmod", chmod_, FILE_}, {"chmod-directory", chmod_, FOLDER}, {"chmod-by-descriptor", chmod_by_descriptor, FILE_},
    {"fchmod", fchmod_, FILE_}, {"fchmod-neither", fchmod_neither, FILE_}, {"fchmodat", fchmodat_, FILE_}, {"fchmodat2", fchmodat2_, FILE_},
    {"fchmodat2-empty", fchmodat2_empty, FILE_}, {"chown", chown_, FILE_}, {"lchown", lchown_, FILE_}, {"fchown", fchown_, FILE_},
    {"fchownat", fchownat_, FILE_}, {"fchownat-empty", fchownat_empty, FILE_}, {"utime", utime_, FILE_}, {"utimes", utimes_, FILE_},
    {"futimesat", futimesat_, FILE_}, {"utimensat", utimensat_, FILE_}, {"utimensat-now", utimensat_now, FILE_},
    {"utimensat-link", utimensat_link, FILE_},
    {"utimensat-empty", utimensat_empty, FILE_}, {"utimensat-directory", utimensat_, FOLDER}, {"futimens", futimens_, FILE_},
    {"setxattr", setxattr_, FILE_}, {"lsetxattr", lsetxattr_, FILE_}, {"fsetxattr", fsetxattr_, FILE_},
    {"setxattr-by-descriptor", setxattr_by_descriptor, FILE_}, {"setxattrat", setxattrat_, FILE_}, {"removexattr", removexattr_, FILE_},
    {"lremovexattr", lremovexattr_, FILE_}, {"fremovexattr", fremovexattr_, FILE_}, {"removexattrat", removexattrat_, FILE_},
    {"file_setattr", file_setattr_, FILE_}, {"flags-set", flags_set, FILE_}, {"flags-set-neither", flags_set_neither, FILE_},
    {"fsxattr-set", fsxattr_set, FILE_}, {"version-set", version_set, FILE_}, {"verity-enable", verity_enable, FILE_},
    {"encryption-policy", encryption_policy, FOLDER}, {"bind", bind_, NOTHING}, {"connect", connect_, SOCKET},
    {"connect-by-descriptor", connect_by_descriptor, SOCKET}, {"send-datagram", send_datagram, SOCKET},
    {"send-datagram-of-pair", send_datagram_of_pair, SOCKET}, {"look-inotify", watch_inotify, FOLDER},
    {"look-inotify-file", watch_inotify, FILE_}, {"look-fanotify", watch_fanotify, FOLDER}, {"handle-take", handle_take, FILE_},
    {"handle-open", handle_open, FILE_}, {"mount-tmpfs", mount_tmpfs, FOLDER}, {"mount-bind", mount_bind, FOLDER},
    {"unmount", unmount, FOLDER}, {"open-tree-clone", open_tree_clone, FOLDER}, {"pivot-root", pivot_root_, FOLDER},
    {"chroot", chroot_, FOLDER}, {"acct", acct_, FILE_}, {"swapon", swapon_, FILE_}, {"quota-set", quota_set, FILE_},
    {"user-namespace", user_namespace, NOTHING}, {"mount-in-user-namespace", mount_in_user_namespace, FOLDER},
    {"io-uring", io_uring, NOTHING}, {"keyring-add", keyring_add, NOTHING},
    /* these change nothing: what can be seen, and what a descriptor that could be had is good for */
    {"look-stat", stat_, FILE_}, {"look-getxattr", getxattr_, FILE_}, {"look-open", open_read, FILE_}, {"look-open-neither", open_neither, FILE_},
    {"look-list", list, FOLDER}, {"look-lock", lock_exclusive, FILE_}, {"look-lease", lease, FILE_}, {"look-dnotify", watch_dnotify, FOLDER},
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void target_of(char *path, const char *tree, const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", tree, name);
}

static void need(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(3);
    }
}

static int make(const char *tree)
{
    char path[PATH_MAX];
    need(mkdir(tree, 0755), tree);
    for (size_t i = 0; i < COUNT(acts); i++) {
        target_of(path, tree, acts[i].name);
        if (acts[i].target == FOLDER)
            need(mkdir(path, 0700), path);
        if (acts[i].target == FILE_) {
            int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
            need(fd, path);
            need(write(fd, "content\n", 8), path);
            fsetxattr(fd, "user.old", "x", 1, 0); /* not every filesystem has attributes: the table says so */
            close(fd);
        }
    }
    return 0;
}

/* In a process of its own; a call that does not end counts as ETIME. */
static void report(const char *name, int (*act)(const char *), const char *target)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    need(child, "fork");
    if (child == 0) {
        alarm(10);
        errno = 0;
        _exit(act(target) < 0 ? errno : 0);
    }
    waitpid(child, &status, 0);
    int error = WIFEXITED(status) ? WEXITSTATUS(status) : ETIME;
    printf("%s %s\n", name, error ? strerrorname_np(error) : "OK");
}

static int try(const char *tree)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < COUNT(acts); i++) {
        target_of(path, tree, acts[i].name);
        report(acts[i].name, acts[i].act, path);
    }
    return 0;
}

/* ---- another process ---- */
static struct { pid_t pid; unsigned long memory; int shared, descriptor; char name[64]; } victim;
static char memory[64] = "memory of the victim";

enum { KILLED, QUEUED, TO_THREAD, TO_PROCESS, BY_PIPE, SIGNALS }; /* from SIGRTMIN on: those are counted, and lower ones come first */

static void signalled(int number)
{
    static const char *const lines[SIGNALS] = {"kill-real-time\n", "kill-queue\n", "kill-thread\n", "kill-pidfd\n", "signal-by-pipe\n"};
    const char *line = number == SIGRTMAX ? "done\n" : lines[number - SIGRTMIN];
    if (write(1, line, strlen(line)) < 0)
        _exit(1);
}

static void count_signals(void)
{
    struct sigaction one_at_a_time = {.sa_handler = signalled};
    sigfillset(&one_at_a_time.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        need(sigaction(SIGRTMIN + i, &one_at_a_time, NULL), "sigaction");
    need(sigaction(SIGRTMAX, &one_at_a_time, NULL), "sigaction");
}

static int abstract(int (*use)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path + 1, victim.name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || use(fd, (void *)&name, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(victim.name)) < 0)
        return -1;
    return fd;
}

static int be_victim(void)
{
    int shared = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    need(shared, "shmget");
    need(shmat(shared, NULL, 0) == (void *)-1 ? -1 : 0, "shmat");
    need(shmctl(shared, IPC_RMID, NULL), "shmctl"); /* it ends with this process */
    snprintf(victim.name, sizeof victim.name, "agent-sandbox-victim-%d", getpid());
    int listener = abstract(bind);
    need(listener, "bind");
    need(listen(listener, 64), "listen");
    count_signals();
    printf("%d %lu %d %d %s\n", getpid(), (unsigned long)memory, shared, listener, victim.name);
    fflush(stdout);
    while (pause() < 0) /* always: it returns when a signal was handled */
        continue;
    return 0;
}

static int in_proc(const char *entry, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", victim.pid, entry);
    return opened(path, flags);
}

static int read_proc(const char *entry)
{
    char byte;
    return read(in_proc(entry, O_RDONLY), &byte, 1) == 1 ? 0 : -1;
}

static int link_in_proc(const char *entry)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", victim.pid, entry);
    return readlink(path, target, sizeof target);
}

static int transfer(int call)
{
    char buffer[16] = "changed";
    struct iovec here = {buffer, sizeof buffer}, there = {(void *)victim.memory, sizeof buffer};
    return syscall(call, victim.pid, &here, 1, &there, 1, 0);
}

#define ATTACK(name) static int name(const char *unused __attribute__((unused)))
ATTACK(kill_0) { return kill(victim.pid, 0); }
ATTACK(kill_continue) { return kill(victim.pid, SIGCONT); }
ATTACK(kill_real_time) { return kill(victim.pid, SIGRTMIN + KILLED); }
ATTACK(kill_queue) { return sigqueue(victim.pid, SIGRTMIN + QUEUED, (union sigval){0}); }
ATTACK(kill_thread) { return tgkill(victim.pid, victim.pid, SIGRTMIN + TO_THREAD); }
ATTACK(kill_pidfd)
{
    int process = syscall(SYS_pidfd_open, victim.pid, 0);
    return process < 0 ? -1 : syscall(SYS_pidfd_send_signal, process, SIGRTMIN + TO_PROCESS, NULL, 0);
}
ATTACK(signal_by_pipe) /* never an error: whether it arrived, the victim says */
{
    int ends[2];
    need(pipe(ends), "pipe");
    if (fcntl(ends[0], F_SETOWN, victim.pid) < 0 || fcntl(ends[0], F_SETSIG, SIGRTMIN + BY_PIPE) < 0)
        return -1;
    if (fcntl(ends[0], F_SETFL, O_ASYNC) < 0)
        return -1;
    return write(ends[1], "x", 1);
}
ATTACK(trace)
{
    if (ptrace(PTRACE_SEIZE, victim.pid, NULL, NULL) < 0)
        return -1;
    return ptrace(PTRACE_DETACH, victim.pid, NULL, NULL) < 0 && errno != ESRCH ? -1 : 0; /* it was never stopped */
}
ATTACK(memory_read) { return transfer(SYS_process_vm_readv); }
ATTACK(memory_write) { return transfer(SYS_process_vm_writev); }
ATTACK(memory_file_read) { char byte; return pread(in_proc("mem", O_RDONLY), &byte, 1, victim.memory); }
ATTACK(memory_file_write) { return pwrite(in_proc("mem", O_RDWR), "X", 1, victim.memory); }
ATTACK(memory_maps) { return read_proc("maps"); }
ATTACK(environment) { return read_proc("environ"); }
ATTACK(arguments) { return read_proc("cmdline"); }
ATTACK(descriptor_take)
{
    int process = syscall(SYS_pidfd_open, victim.pid, 0);
    return process < 0 ? -1 : syscall(SYS_pidfd_getfd, process, victim.descriptor, 0);
}
ATTACK(descriptor_link) { return link_in_proc("fd/1"); }
ATTACK(root_link) { return link_in_proc("root"); }
ATTACK(oom_score) { return write(in_proc("oom_score_adj", O_WRONLY), "1000", 4); }
ATTACK(name_write) { return write(in_proc("comm", O_WRONLY), "changed", 7); }
ATTACK(limit_set)
{
    struct rlimit less = {64, 64};
    return prlimit(victim.pid, RLIMIT_NOFILE, &less, NULL);
}
ATTACK(limit_get) { struct rlimit limit; return prlimit(victim.pid, RLIMIT_NOFILE, NULL, &limit); }
ATTACK(priority_set) { return setpriority(PRIO_PROCESS, victim.pid, 5); }
ATTACK(priority_of_group) { return setpriority(PRIO_PGRP, getpgid(victim.pid), 6); }
ATTACK(io_priority_set) { return syscall(SYS_ioprio_set, 1, victim.pid, 3 << 13); }
ATTACK(scheduler_set) { return sched_setscheduler(victim.pid, SCHED_BATCH, &(struct sched_param){0}); }
ATTACK(scheduler_parameter) { return sched_setparam(victim.pid, &(struct sched_param){0}); }
ATTACK(affinity_set)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    return sched_setaffinity(victim.pid, sizeof first, &first);
}
ATTACK(compare) { return syscall(SYS_kcmp, victim.pid, getpid(), 0, 1, 1); }
ATTACK(pages_move)
{
    void *page = (void *)victim.memory;
    int node = 0, status;
    return syscall(SYS_move_pages, victim.pid, 1, &page, &node, &status, 0);
}
ATTACK(robust_list) { void *head; size_t size; return syscall(SYS_get_robust_list, victim.pid, &head, &size); }
ATTACK(shared_memory) { return shmat(victim.shared, NULL, 0) == (void *)-1 ? -1 : 0; }
ATTACK(abstract_connect) { return abstract(connect); }
ATTACK(group_join) { return setpgid(0, victim.pid); }

static const struct { const char *name; int (*act)(const char *); } attacks[] = {
    {"kill-0", kill_0}, {"kill-continue", kill_continue}, {"kill-real-time", kill_real_time}, {"kill-queue", kill_queue},
    {"kill-thread", kill_thread}, {"kill-pidfd", kill_pidfd}, {"signal-by-pipe", signal_by_pipe}, {"trace", trace},
    {"memory-read", memory_read}, {"memory-write", memory_write},
    {"memory-file-read", memory_file_read}, {"memory-file-write", memory_file_write}, {"memory-maps", memory_maps},
    {"environment", environment}, {"descriptor-take", descriptor_take}, {"descriptor-link", descriptor_link}, {"root-link", root_link},
    {"oom-score", oom_score}, {"name-write", name_write}, {"limit-set", limit_set}, {"limit-get", limit_get}, {"priority-set", priority_set},
    {"priority-of-group", priority_of_group}, {"io-priority-set", io_priority_set}, {"scheduler-set", scheduler_set},
    {"scheduler-parameter", scheduler_parameter}, {"affinity-set", affinity_set}, {"compare", compare}, {"pages-move", pages_move},
    {"robust-list", robust_list}, {"shared-memory", shared_memory}, {"abstract-connect", abstract_connect}, {"group-join", group_join},
    {"look-arguments", arguments},
};

static int attack(char **facts)
{
    victim.pid = atoi(facts[0]);
    victim.memory = strtoul(facts[1], NULL, 10);
    victim.shared = atoi(facts[2]);
    victim.descriptor = atoi(facts[3]);
    snprintf(victim.name, sizeof victim.name, "%s", facts[4]);
    for (size_t i = 0; i < COUNT(attacks); i++)
        report(attacks[i].name, attacks[i].act, NULL);
    return 0;
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "make") == 0)
        return make(words[2]);
    if (count == 4 && strcmp(words[1], "try") == 0) {
        own = words[3];
        return try(words[2]);
    }
    if (count == 2 && strcmp(words[1], "victim") == 0)
        return be_victim();
    if (count == 7 && strcmp(words[1], "attack") == 0)
        return attack(words + 2);
    fprintf(stderr, "usage: writes make TREE | try TREE OWN | victim | attack FACTS...\n");
    return 2;
}
