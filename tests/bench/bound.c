/* The least that must be done for a room: what the broker is measured against.
 *
 * It does the work of the wire that can be seen: a session for register, the members for join, an id, a sequence
 * number, a ring of 500 and the whole message back for post, one activity to each other member, the ring for fetch.
 * It reads no JSON but the values it needs, checks nothing, limits nothing, and cannot be stopped but by a signal.
 *
 * One write per connection and turn of the loop, as in the broker. Activity for a connection whose socket is full is
 * merged to the newest one. Linux (epoll).
 *
 *     cc -O2 -o bound bound.c && ./bound SOCKET READY_FD
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>

enum {
    RING = 500,
    READ_BYTES = 64 * 1024,
    SEND_BUFFER_BYTES = 1024 * 1024,
    EVENTS = 512,
    MAX_ROOMS = 64,
    MAX_NAMES = 8192,
    WORD = 136, /* a name or a request id with its end */
};

struct bytes {
    char *at;
    size_t size, room;
};

struct message {
    struct bytes encoded;
    int name;
};

struct connection {
    int fd;
    int name; /* index into names; -1 before register */
    char session[20];
    struct bytes in;  /* a frame that has not come as a whole */
    struct bytes out; /* what is not written yet */
    struct room *rooms[MAX_ROOMS];
    long joined_at[MAX_ROOMS];
    int is_queued, is_full, is_dead;
    struct bytes held; /* the newest activity while the socket is full */
};

struct room {
    int index;
    char name[WORD], epoch[20];
    long last_seq;
    struct message ring[RING];
    struct connection **members;
    int member_count, member_room;
    long cursors[MAX_NAMES];
};

static int epoll;
static char names[MAX_NAMES][WORD];
static int name_count;
static struct room *rooms[MAX_ROOMS];
static int room_count;
static long sessions, ids;
static struct connection **queued; /* whom something is to be written to at the end of this turn */
static int queued_count, queued_room;
static char input[READ_BYTES];

static void *must(void *pointer)
{
    if (!pointer) abort();
    return pointer;
}

static char *space_for(struct bytes *to, size_t more)
{
    if (to->size + more > to->room) {
        size_t room = to->room ? to->room : 1024;
        while (room < to->size + more) room *= 2;
        to->at = must(realloc(to->at, room));
        to->room = room;
    }
    return to->at + to->size;
}

static void put(struct bytes *to, const void *data, size_t size)
{
    memcpy(space_for(to, size), data, size);
    to->size += size;
}

#define PUT_FORMAT(to, ...) \
    do { \
        char text_[1024]; \
        int size_ = snprintf(text_, sizeof text_, __VA_ARGS__); \
        put(to, text_, (size_t)size_); \
    } while (0)

static void queue(struct connection *to)
{
    if (to->is_queued || to->is_dead) return;
    if (queued_count == queued_room) {
        queued_room = queued_room ? queued_room * 2 : 64;
        queued = must(realloc(queued, (size_t)queued_room * sizeof *queued));
    }
    to->is_queued = 1;
    queued[queued_count++] = to;
}

/* A frame is begun with its header left open, and ended by writing its length there. */
static size_t begin_frame(struct connection *to)
{
    space_for(&to->out, 4);
    to->out.size += 4;
    return to->out.size;
}

static void end_frame(struct connection *to, size_t start)
{
    uint32_t length = htonl((uint32_t)(to->out.size - start));
    memcpy(to->out.at + start - 4, &length, 4);
    queue(to);
}

/* The value of a key: a string with its escapes as they are, or a number. The size in *size; NULL if it is absent. */
static const char *value(const char *body, size_t length, const char *key, size_t *size)
{
    char quoted[32];
    int quoted_size = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *end = body + length;
    const char *at = memmem(body, length, quoted, (size_t)quoted_size);
    if (!at) return NULL;
    at += quoted_size;
    while (at < end && *at == ' ') at++;
    if (*at != '"') {
        const char *stop = at;
        while (stop < end && *stop != ',' && *stop != '}') stop++;
        *size = (size_t)(stop - at);
        return at;
    }
    const char *stop = ++at;
    for (;;) {
        stop = memchr(stop, '"', (size_t)(end - stop));
        if (!stop) return NULL;
        int slashes = 0;
        while (stop - 1 - slashes >= at && stop[-1 - slashes] == '\\') slashes++;
        if (slashes % 2 == 0) break;
        stop++;
    }
    *size = (size_t)(stop - at);
    return at;
}

static void word(const char *body, size_t length, const char *key, char to[WORD])
{
    size_t size = 0;
    const char *at = value(body, length, key, &size);
    if (!at) size = 0;
    if (size >= WORD) size = WORD - 1;
    if (size) memcpy(to, at, size);
    to[size] = 0;
}

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static struct room *room_named(const char *name)
{
    for (int i = 0; i < room_count; i++)
        if (!strcmp(rooms[i]->name, name)) return rooms[i];
    if (room_count == MAX_ROOMS) abort();
    struct room *made = must(calloc(1, sizeof *made));
    made->index = room_count;
    snprintf(made->name, sizeof made->name, "%s", name);
    snprintf(made->epoch, sizeof made->epoch, "%016lx", ++sessions);
    return rooms[room_count++] = made;
}

static long first_seq(const struct room *room)
{
    return room->last_seq > RING ? room->last_seq - RING + 1 : 1;
}

static void tell(struct room *room, const struct connection *but, const char *from, long seq)
{
    struct {
        uint32_t length;
        char body[256];
    } frame;
    int size = snprintf(frame.body, sizeof frame.body,
                        "{\"type\":\"activity\",\"room\":\"%s\",\"from\":\"%s\",\"seq\":%ld}", room->name, from, seq);
    frame.length = htonl((uint32_t)size);
    for (int i = 0; i < room->member_count; i++) {
        struct connection *member = room->members[i];
        if (member == but) continue;
        struct bytes *to = &member->out;
        if (member->is_full) {
            to = &member->held;
            to->size = 0;
        }
        put(to, &frame, 4 + (size_t)size);
        queue(member);
    }
}

static void put_member(struct bytes *to, const struct connection *member, int room)
{
    PUT_FORMAT(to, "{\"sessionId\":\"%s\",\"name\":\"%s\",\"joinedAt\":%ld}", member->session, names[member->name],
               member->joined_at[room]);
}

static void answer_register(struct connection *from, const char *id, const char *body, size_t length)
{
    char name[WORD];
    word(body, length, "name", name);
    for (from->name = 0; from->name < name_count; from->name++)
        if (!strcmp(names[from->name], name)) break;
    if (from->name == name_count) {
        if (name_count == MAX_NAMES) abort();
        strcpy(names[name_count++], name);
    }
    snprintf(from->session, sizeof from->session, "%016lx", ++sessions);
    size_t start = begin_frame(from);
    PUT_FORMAT(&from->out, "{\"type\":\"registered\",\"requestId\":\"%s\",\"sessionId\":\"%s\",\"broker\":\"bound\","
               "\"protocol\":1}", id, from->session);
    end_frame(from, start);
}

static void answer_join(struct connection *from, const char *id, struct room *room)
{
    int is_new = !from->rooms[room->index];
    if (is_new) {
        if (room->member_count == room->member_room) {
            room->member_room = room->member_room ? room->member_room * 2 : 16;
            room->members = must(realloc(room->members, (size_t)room->member_room * sizeof *room->members));
        }
        room->members[room->member_count++] = from;
        from->rooms[room->index] = room;
        from->joined_at[room->index] = now();
    }
    int shared = -1;
    for (int i = 0; i < room->member_count; i++) shared += room->members[i]->name == from->name;
    long cursor = room->cursors[from->name];
    long start_seq = cursor < first_seq(room) - 1 ? first_seq(room) - 1 : cursor;
    size_t start = begin_frame(from);
    PUT_FORMAT(&from->out, "{\"type\":\"joined\",\"requestId\":\"%s\",\"room\":\"%s\",\"epoch\":\"%s\",\"cursor\":%ld,"
               "\"lastSeq\":%ld,\"unread\":%ld,\"sharedWith\":%d,\"members\":[",
               id, room->name, room->epoch, cursor, room->last_seq, room->last_seq - start_seq, shared);
    for (int i = 0; i < room->member_count; i++) {
        if (i) put(&from->out, ",", 1);
        put_member(&from->out, room->members[i], room->index);
    }
    put(&from->out, "]}", 2);
    end_frame(from, start);
    if (is_new) tell(room, from, names[from->name], 0);
}

static void answer_post(struct connection *from, const char *id, struct room *room, const char *body, size_t length)
{
    size_t size = 0;
    const char *text = value(body, length, "text", &size);
    long unread = 0;
    for (long seq = room->last_seq; seq > room->cursors[from->name] && seq >= first_seq(room); seq--)
        unread += room->ring[seq % RING].name != from->name;
    long seq = ++room->last_seq;
    room->cursors[from->name] = seq;
    struct message *message = &room->ring[seq % RING];
    message->name = from->name;
    message->encoded.size = 0;
    PUT_FORMAT(&message->encoded, "{\"id\":\"bound-%lx\",\"seq\":%ld,\"timestamp\":%ld,\"room\":\"%s\",\"from\":"
               "{\"sessionId\":\"%s\",\"name\":\"%s\"},\"text\":\"", ++ids, seq, now(), room->name, from->session,
               names[from->name]);
    put(&message->encoded, text, text ? size : 0);
    put(&message->encoded, "\"}", 2);

    size_t start = begin_frame(from);
    PUT_FORMAT(&from->out, "{\"type\":\"posted\",\"requestId\":\"%s\",\"unreadBefore\":%ld,\"message\":", id, unread);
    put(&from->out, message->encoded.at, message->encoded.size);
    put(&from->out, "}", 1);
    end_frame(from, start);
    tell(room, from, names[from->name], seq);
}

static void answer_fetch(struct connection *from, const char *id, struct room *room, const char *body, size_t length)
{
    char number[WORD];
    word(body, length, "afterSeq", number);
    long seq = atol(number) + 1;
    word(body, length, "limit", number);
    long limit = *number ? atol(number) : 200;
    if (seq < first_seq(room)) seq = first_seq(room);
    size_t start = begin_frame(from);
    PUT_FORMAT(&from->out, "{\"type\":\"messages\",\"requestId\":\"%s\",\"room\":\"%s\",\"firstSeq\":%ld,"
               "\"lastSeq\":%ld,\"cursor\":%ld,\"messages\":[", id, room->name, first_seq(room), room->last_seq,
               room->cursors[from->name]);
    for (long count = 0; seq <= room->last_seq && count < limit; seq++, count++) {
        if (count) put(&from->out, ",", 1);
        put(&from->out, room->ring[seq % RING].encoded.at, room->ring[seq % RING].encoded.size);
    }
    put(&from->out, "]}", 2);
    end_frame(from, start);
}

static void answer(struct connection *from, const char *body, size_t length)
{
    char kind[WORD], id[WORD], room[WORD];
    word(body, length, "type", kind);
    word(body, length, "requestId", id);
    if (!strcmp(kind, "register")) {
        answer_register(from, id, body, length);
        return;
    }
    word(body, length, "room", room);
    if (!strcmp(kind, "post")) answer_post(from, id, room_named(room), body, length);
    else if (!strcmp(kind, "join")) answer_join(from, id, room_named(room));
    else if (!strcmp(kind, "fetch")) answer_fetch(from, id, room_named(room), body, length);
}

/* Answers the whole frames in some bytes; how many bytes they took. */
static size_t answer_frames(struct connection *from, const char *data, size_t size)
{
    size_t at = 0;
    while (size - at >= 4) {
        uint32_t length;
        memcpy(&length, data + at, 4);
        length = ntohl(length);
        if (size - at - 4 < length) break;
        answer(from, data + at + 4, length);
        at += 4 + length;
    }
    return at;
}

static void end(struct connection *gone)
{
    gone->is_dead = 1;
    close(gone->fd);
    for (int r = 0; r < room_count; r++) {
        struct room *room = rooms[r];
        if (!gone->rooms[r]) continue;
        for (int i = 0; i < room->member_count; i++)
            if (room->members[i] == gone) {
                memmove(room->members + i, room->members + i + 1,
                        (size_t)(--room->member_count - i) * sizeof *room->members);
                break;
            }
        tell(room, gone, "(left)", 0);
    }
    for (int i = 0; i < queued_count; i++)
        if (queued[i] == gone) queued[i] = NULL;
    free(gone->in.at);
    free(gone->out.at);
    free(gone->held.at);
    free(gone);
}

static void wait_for(struct connection *one, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = one};
    epoll_ctl(epoll, EPOLL_CTL_MOD, one->fd, &event);
}

/* Returns 0 when the connection has ended. */
static int flush(struct connection *to)
{
    size_t sent = 0;
    while (sent < to->out.size) {
        ssize_t count = send(to->fd, to->out.at + sent, to->out.size - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) break;
        if (count < 0) return 0;
        sent += (size_t)count;
    }
    memmove(to->out.at, to->out.at + sent, to->out.size - sent);
    to->out.size -= sent;
    if (to->out.size && !to->is_full) {
        to->is_full = 1;
        wait_for(to, EPOLLIN | EPOLLOUT);
    }
    return 1;
}

static int writable(struct connection *to)
{
    if (!flush(to)) return 0;
    if (!to->out.size && to->is_full) {
        to->is_full = 0;
        wait_for(to, EPOLLIN);
        if (to->held.size) {
            put(&to->out, to->held.at, to->held.size);
            to->held.size = 0;
            queue(to);
        }
    }
    return 1;
}

static int readable(struct connection *from)
{
    ssize_t count = recv(from->fd, input, sizeof input, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (count <= 0) return 0;
    if (from->in.size) {
        put(&from->in, input, (size_t)count);
        size_t used = answer_frames(from, from->in.at, from->in.size);
        memmove(from->in.at, from->in.at + used, from->in.size - used);
        from->in.size -= used;
    } else {
        size_t used = answer_frames(from, input, (size_t)count);
        put(&from->in, input + used, (size_t)count - used);
    }
    return 1;
}

static void accept_all(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        int size = SEND_BUFFER_BYTES;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        struct connection *made = must(calloc(1, sizeof *made));
        made->fd = fd;
        made->name = -1;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = made};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int count, char **words)
{
    if (count != 3) return 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", words[1]);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return 1;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event listening = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening);
    int ready = atoi(words[2]);
    if (write(ready, "ready\n", 6) != 6) return 1;
    close(ready);

    struct epoll_event events[EVENTS];
    for (;;) {
        int found = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < found; i++) {
            struct connection *one = events[i].data.ptr;
            if (!one) {
                accept_all(listener);
                continue;
            }
            int is_alive = 1;
            if (events[i].events & EPOLLOUT) is_alive = writable(one);
            if (is_alive && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) is_alive = readable(one);
            if (!is_alive) end(one);
        }
        /* In the order in which they were queued, so the asker is answered before the others are told. Who cannot
         * be written to is found again by reading. */
        for (int i = 0; i < queued_count; i++)
            if (queued[i]) {
                queued[i]->is_queued = 0;
                if (!queued[i]->is_full) flush(queued[i]);
            }
        queued_count = 0;
    }
}
