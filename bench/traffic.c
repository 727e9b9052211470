/* traffic serve                    a web server on a free port of the loopback, whose number it prints: GET /N is answered with N bytes
 * traffic drive PORT [PROXY-PORT]  a client of it, straight or through a proxy: reads one line, does it, prints one number, and so on
 *
 *   stream  N BYTES   N connections get so many bytes each: bytes a second, of all of them
 *   ask     N COUNT   COUNT small requests over N kept connections, each waiting for its answer: requests a second
 *   plain   N COUNT   the same, and a proxy sees the requests (http://) instead of a tunnel
 *   connect N COUNT   COUNT new connections, one after the other, with one small answer each: microseconds, the median
 *   hold    N COUNT   COUNT connections stay open and say nothing, until the next line: how many there are
 *
 * One thread, epoll, no allocation on the way: it costs less than what it measures.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, SMALL = 512, PIECE = 1 << 18 };

struct end {
    int fd;
    long left;     /* bytes to come, or to go */
    int head, got; /* of a head: how much of it has gone, or come */
    char text[1024];
};

static struct end ends[MOST];
static char piece[PIECE];

static void need(int done, const char *what)
{
    if (!done) {
        perror(what);
        exit(3);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static struct sockaddr_in here(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void at_once(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void watch(int poll, struct end *end, int how, unsigned events)
{
    struct epoll_event event = {.events = events, .data.ptr = end};
    need(epoll_ctl(poll, how, end->fd, &event) == 0, "epoll_ctl");
}

/* The server */

static int say(struct end *end)
{
    while (end->head > 0 || end->left > 0) {
        ssize_t done;
        if (end->head > 0) {
            int most = end->left < PIECE - end->head ? end->left : PIECE - end->head;
            char whole[sizeof end->text + SMALL];
            if (most > SMALL)
                most = SMALL;
            memcpy(whole, end->text, end->head);
            memset(whole + end->head, 'x', most);
            done = send(end->fd, whole, end->head + most, MSG_NOSIGNAL);
            if (done >= end->head) { /* a fresh answer always fits that far */
                end->left -= done - end->head;
                end->head = 0;
                continue;
            }
        } else
            done = send(end->fd, piece, end->left < PIECE ? end->left : PIECE, MSG_NOSIGNAL);
        if (done < 0)
            return errno == EAGAIN ? 0 : -1;
        end->left -= done;
    }
    return 1;
}

static int hear(struct end *end)
{
    ssize_t count = recv(end->fd, end->text + end->got, sizeof end->text - 1 - end->got, 0);
    if (count <= 0)
        return count < 0 && errno == EAGAIN ? 0 : -1;
    end->got += count;
    end->text[end->got] = 0;
    if (!strstr(end->text, "\r\n\r\n"))
        return 0;
    end->left = strtol(end->text + 5, NULL, 10); /* after "GET /" */
    end->got = 0;
    end->head = sprintf(end->text, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", end->left);
    return 1;
}

static void serve_one(int poll, struct end *end)
{
    int busy = end->head > 0 || end->left > 0, done = 1;
    if (!busy && (done = hear(end)) == 0)
        return;
    if (done > 0)
        done = say(end);
    if (done < 0) {
        close(end->fd);
        free(end);
    } else if (busy != !done)
        watch(poll, end, EPOLL_CTL_MOD, done ? EPOLLIN : EPOLLOUT);
}

static void serve(void)
{
    static struct end listener;
    struct sockaddr_in address = here(0);
    socklen_t size = sizeof address;
    struct epoll_event events[256];
    int poll = epoll_create1(0);
    listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    need(bind(listener.fd, (void *)&address, size) == 0 && listen(listener.fd, 4096) == 0, "listen");
    need(getsockname(listener.fd, (void *)&address, &size) == 0, "getsockname");
    watch(poll, &listener, EPOLL_CTL_ADD, EPOLLIN);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;)
        for (int n = epoll_wait(poll, events, 256, -1); n > 0; n--) {
            struct end *end = events[n - 1].data.ptr;
            if (end != &listener) {
                serve_one(poll, end);
                continue;
            }
            int fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0)
                continue;
            end = calloc(1, sizeof *end);
            at_once(end->fd = fd);
            watch(poll, end, EPOLL_CTL_ADD, EPOLLIN);
        }
}

/* The client */

static int server, proxy;

static void read_head(struct end *end)
{
    char *found;
    end->got = 0;
    do {
        ssize_t count = recv(end->fd, end->text + end->got, sizeof end->text - 1 - end->got, 0);
        need(count > 0, "an answer");
        end->got += count;
        end->text[end->got] = 0;
    } while (!(found = strstr(end->text, "\r\n\r\n")));
    end->got -= found + 4 - end->text; /* what has come of the body */
    if (strncmp(end->text + 8, " 200", 4)) {
        fprintf(stderr, "%s\n", end->text);
        exit(3);
    }
}

static void reach(struct end *end, int plain)
{
    struct sockaddr_in address = here(proxy ? proxy : server);
    end->fd = socket(AF_INET, SOCK_STREAM, 0);
    at_once(end->fd);
    need(connect(end->fd, (void *)&address, sizeof address) == 0, "connect");
    if (proxy && !plain) {
        dprintf(end->fd, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", server, server);
        read_head(end);
    }
}

static void ask(struct end *end, long bytes, int plain)
{
    char text[256], where[64] = "";
    if (proxy && plain)
        sprintf(where, "http://127.0.0.1:%d", server);
    int size = sprintf(text, "GET %s/%ld HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: traffic\r\nAccept: */*\r\n\r\n", where, bytes, server);
    need(send(end->fd, text, size, MSG_NOSIGNAL) == size, "send");
}

static double stream(int count, long bytes)
{
    struct epoll_event events[256];
    int poll = epoll_create1(0), open = count;
    for (int n = 0; n < count; n++)
        reach(&ends[n], 0);
    double begin = now();
    for (int n = 0; n < count; n++)
        ask(&ends[n], bytes, 0);
    for (int n = 0; n < count; n++) {
        read_head(&ends[n]);
        ends[n].left = bytes - ends[n].got;
        watch(poll, &ends[n], EPOLL_CTL_ADD, EPOLLIN);
    }
    while (open)
        for (int n = epoll_wait(poll, events, 256, -1); n > 0; n--) {
            struct end *end = events[n - 1].data.ptr;
            ssize_t got = recv(end->fd, piece, PIECE, MSG_DONTWAIT);
            need(got > 0 || (got < 0 && errno == EAGAIN), "a stream");
            end->left -= got > 0 ? got : 0;
            if (end->left == 0) {
                close(end->fd);
                open--;
            }
        }
    double seconds = now() - begin;
    close(poll);
    return count * (double)bytes / seconds;
}

static double asked(int count, long times, int plain)
{
    struct epoll_event events[256];
    int poll = epoll_create1(0);
    long begun = 0, done = 0;
    for (int n = 0; n < count; n++) {
        reach(&ends[n], plain);
        watch(poll, &ends[n], EPOLL_CTL_ADD, EPOLLIN);
    }
    double begin = now();
    for (int n = 0; n < count && begun < times; n++, begun++)
        ask(&ends[n], SMALL, plain);
    while (done < times)
        for (int n = epoll_wait(poll, events, 256, -1); n > 0; n--) {
            struct end *end = events[n - 1].data.ptr;
            read_head(end);
            while (end->got < SMALL) {
                ssize_t got = recv(end->fd, piece, SMALL - end->got, 0);
                need(got > 0, "a body");
                end->got += got;
            }
            done++;
            if (begun++ < times)
                ask(end, SMALL, plain);
        }
    double seconds = now() - begin;
    for (int n = 0; n < count; n++)
        close(ends[n].fd);
    close(poll);
    return times / seconds;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double connected(long count)
{
    static double seen[MOST];
    for (int n = 0; n < count; n++) {
        double begin = now();
        reach(&ends[0], 0);
        ask(&ends[0], 1, 0);
        read_head(&ends[0]);
        while (ends[0].got < 1) {
            ssize_t got = recv(ends[0].fd, piece, 1, 0);
            need(got > 0, "a body");
            ends[0].got += got;
        }
        seen[n] = (now() - begin) * 1e6;
        close(ends[0].fd);
    }
    qsort(seen, count, sizeof seen[0], by_size);
    return seen[count / 2];
}

static void drive(void)
{
    char line[256], word[16];
    int count;
    long much, held = 0;
    while (fgets(line, sizeof line, stdin)) {
        double result = 0;
        need(sscanf(line, "%15s %d %ld", word, &count, &much) == 3 && count <= MOST, "a line");
        while (held)
            close(ends[--held].fd);
        if (!strcmp(word, "stream"))
            result = stream(count, much);
        else if (!strcmp(word, "ask") || !strcmp(word, "plain"))
            result = asked(count, much, word[0] == 'p');
        else if (!strcmp(word, "connect"))
            result = connected(much);
        else if (!strcmp(word, "hold"))
            for (; held < much; result = ++held)
                reach(&ends[held], 0);
        printf("%.3f\n", result);
        fflush(stdout);
    }
}

int main(int count, char **words)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memset(piece, 'x', sizeof piece);
    if (count == 2)
        serve();
    need(count > 2, "usage");
    server = atoi(words[2]);
    proxy = count > 3 ? atoi(words[3]) : 0;
    drive();
}
