/* The echo server of `make bench-python`: it shares no code with any client that is measured.
 *
 * usage: echo [CERTIFICATE KEY]
 *
 * It prints its port, and a second one for TLS if it has a certificate, and ends with its standard
 * input. One thread, epoll, one write for all the frames that a read has completed. A frame goes
 * back as it came, without its mask. That holds for compressed frames too: the server agrees to
 * permessage-deflate without context takeover in both directions, so whoever compressed a message
 * can decompress it.
 *
 * Compile it with -DWITH_TLS -lssl -lcrypto for TLS by OpenSSL.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
static SSL_CTX *tls_context;
#else
typedef void SSL;
#endif

enum { READ_BYTES = 256 << 10, HEAD_BYTES_MAX = 16 << 10, KEPT_BYTES = 64 << 10 };
/* More unsent bytes than this stop reading, so that a client that only sends can't fill memory. */
enum { UNSENT_BYTES_MAX = 256 << 20 };
enum { CONTINUES, FAILS };

struct buffer {
    uint8_t *bytes;
    size_t start, end, capacity;
};

struct connection {
    int socket;
    int upgraded, closing;
    uint32_t events;
    SSL *tls;
    struct buffer in, out;
};

static int epoll;

static void *checked(void *memory) {
    if (memory == NULL) {
        perror("echo: memory");
        exit(1);
    }
    return memory;
}

/* Makes room for `more` bytes at the end. */
static void reserve(struct buffer *buffer, size_t more) {
    size_t used = buffer->end - buffer->start;
    if (buffer->capacity - buffer->end >= more) return;
    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;
    }
    if (buffer->capacity - used >= more) return;
    while (buffer->capacity - used < more) buffer->capacity = buffer->capacity * 2 + 4096;
    buffer->bytes = checked(realloc(buffer->bytes, buffer->capacity));
}

/* Gives a large buffer back once it is empty. */
static void release(struct buffer *buffer) {
    if (buffer->start < buffer->end) return;
    buffer->start = buffer->end = 0;
    if (buffer->capacity <= KEPT_BYTES) return;
    free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}

/* The accept key of a handshake: base64(SHA-1(key + GUID)), RFC 6455, 4.2.2. */
static void accept_key(const char *key, size_t key_bytes, char *text) {
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t message[128] = {0};
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t bytes = key_bytes + sizeof guid - 1;
    size_t padded = bytes < 56 ? 64 : 128;
    memcpy(message, key, key_bytes);
    memcpy(message + key_bytes, guid, sizeof guid - 1);
    message[bytes] = 0x80;
    message[padded - 2] = (uint8_t)(bytes * 8 >> 8);
    message[padded - 1] = (uint8_t)(bytes * 8);
    for (size_t block = 0; block < padded; block += 64) {
        uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
        for (int i = 0; i < 16; i++) {
            const uint8_t *at = message + block + i * 4;
            w[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        }
        for (int i = 16; i < 80; i++) {
            uint32_t x = w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16];
            w[i] = x << 1 | x >> 31;
        }
        for (int i = 0; i < 80; i++) {
            uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                         : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                         : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                  : (b ^ c ^ d) + 0xca62c1d6;
            uint32_t next = (a << 5 | a >> 27) + f + e + w[i];
            e = d, d = c, c = b << 30 | b >> 2, b = a, a = next;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
    uint8_t digest[21] = {0};
    for (int i = 0; i < 20; i++) digest[i] = (uint8_t)(h[i / 4] >> (24 - i % 4 * 8));
    for (int i = 0; i < 7; i++) {
        uint32_t three = (uint32_t)digest[i * 3] << 16 | digest[i * 3 + 1] << 8 | digest[i * 3 + 2];
        for (int j = 0; j < 4; j++) text[i * 4 + j] = digits[three >> (18 - j * 6) & 63];
    }
    text[27] = '=';
    text[28] = 0;
}

/* Answers the opening handshake once it is complete. */
static int upgrade(struct connection *c) {
    reserve(&c->in, 1);
    c->in.bytes[c->in.end] = 0;
    char *head = (char *)c->in.bytes + c->in.start;
    char *end = strstr(head, "\r\n\r\n");
    if (end == NULL) return c->in.end - c->in.start > HEAD_BYTES_MAX ? FAILS : CONTINUES;
    *end = 0;
    char *key = strcasestr(head, "\r\nsec-websocket-key:");
    if (key == NULL) return FAILS;
    key += strlen("\r\nsec-websocket-key:");
    key += strspn(key, " ");
    size_t key_bytes = strcspn(key, " \r");
    if (key_bytes > 64) return FAILS;
    char text[32];
    accept_key(key, key_bytes, text);
    const char *deflate = strcasestr(head, "permessage-deflate") == NULL
                              ? ""
                              : "Sec-WebSocket-Extensions: permessage-deflate; "
                                "server_no_context_takeover; client_no_context_takeover\r\n";
    reserve(&c->out, 512);
    c->out.end += (size_t)sprintf((char *)c->out.bytes + c->out.end,
                                  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                  "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
                                  text, deflate);
    c->in.start += (size_t)(end - head) + 4;
    c->upgraded = 1;
    return CONTINUES;
}

/* Echoes the complete frames at the front of the input. */
static int echo(struct connection *c) {
    for (;;) {
        const uint8_t *frame = c->in.bytes + c->in.start;
        size_t have = c->in.end - c->in.start, payload, header = 6;
        if (have < 6 || c->closing) return CONTINUES;
        if (!(frame[1] & 0x80)) return FAILS;
        payload = frame[1] & 127;
        if (payload == 126) {
            header = 8;
            payload = (size_t)frame[2] << 8 | frame[3];
        } else if (payload == 127) {
            header = 14;
            if (have < header) return CONTINUES;
            payload = 0;
            for (int i = 2; i < 10; i++) payload = payload << 8 | frame[i];
            if (payload > UNSENT_BYTES_MAX) return FAILS;
        }
        if (have < header + payload) {
            reserve(&c->in, header + payload - have);
            return CONTINUES;
        }
        uint8_t opcode = frame[0] & 15;
        c->in.start += header + payload;
        if (opcode == 10) continue;
        c->closing = opcode == 8;
        reserve(&c->out, header + payload);
        uint8_t *out = c->out.bytes + c->out.end;
        memcpy(out, frame, header - 4);
        out[1] &= 127;
        if (opcode == 9) out[0] = frame[0] + 1;
        const uint8_t *mask = frame + header - 4, *from = frame + header;
        uint8_t *to = out + header - 4;
        uint64_t wide, piece;
        memcpy(&wide, mask, 4);
        memcpy((uint8_t *)&wide + 4, mask, 4);
        size_t i = 0;
        for (; i + 8 <= payload; i += 8) {
            memcpy(&piece, from + i, 8);
            piece ^= wide;
            memcpy(to + i, &piece, 8);
        }
        for (; i < payload; i++) to[i] = from[i] ^ mask[i & 3];
        c->out.end += header - 4 + payload;
    }
}

/* As read(2): -1 with EAGAIN if there is nothing. */
static ssize_t receive(struct connection *c, void *bytes, size_t count) {
#ifdef WITH_TLS
    if (c->tls != NULL) {
        int got = SSL_read(c->tls, bytes, (int)count);
        if (got > 0) return got;
        int error = SSL_get_error(c->tls, got);
        ERR_clear_error();
        errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
        return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
    }
#endif
    return recv(c->socket, bytes, count, 0);
}

static ssize_t transmit(struct connection *c, const void *bytes, size_t count) {
#ifdef WITH_TLS
    if (c->tls != NULL) {
        int sent = SSL_write(c->tls, bytes, (int)count);
        if (sent > 0) return sent;
        int error = SSL_get_error(c->tls, sent);
        ERR_clear_error();
        errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
        return -1;
    }
#endif
    return send(c->socket, bytes, count, MSG_NOSIGNAL);
}

static int flush(struct connection *c) {
    while (c->out.start < c->out.end) {
        ssize_t sent = transmit(c, c->out.bytes + c->out.start, c->out.end - c->out.start);
        if (sent < 0) return errno == EAGAIN ? CONTINUES : FAILS;
        c->out.start += (size_t)sent;
    }
    release(&c->out);
    return c->closing ? FAILS : CONTINUES;
}

/* Reads once (TLS: until nothing is left), echoes, writes. */
static int serve(struct connection *c, uint32_t events) {
    if (events & EPOLLOUT && flush(c) == FAILS) return FAILS;
    while (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        reserve(&c->in, READ_BYTES);
        size_t room = c->in.capacity - c->in.end;
        ssize_t got = receive(c, c->in.bytes + c->in.end, room < READ_BYTES ? room : READ_BYTES);
        if (got == 0 || (got < 0 && errno != EAGAIN)) return FAILS;
        if (got < 0) break;
        c->in.end += (size_t)got;
        if (!c->upgraded && upgrade(c) == FAILS) return FAILS;
        if (c->upgraded && echo(c) == FAILS) return FAILS;
        if (c->tls == NULL) break;
    }
    release(&c->in);
    return flush(c);
}

static void finish(struct connection *c) {
#ifdef WITH_TLS
    if (c->tls != NULL) {
        SSL_shutdown(c->tls);
        SSL_free(c->tls);
    }
#endif
    close(c->socket);
    free(c->in.bytes);
    free(c->out.bytes);
    free(c);
}

/* Has epoll say what the connection waits for. */
static void watch(struct connection *c, int operation) {
    size_t unsent = c->out.end - c->out.start;
    uint32_t events = (unsent < UNSENT_BYTES_MAX ? EPOLLIN : 0u) | (unsent > 0 ? EPOLLOUT : 0u);
    if (operation == EPOLL_CTL_MOD && events == c->events) return;
    struct epoll_event event = {.events = c->events = events, .data.ptr = c};
    epoll_ctl(epoll, operation, c->socket, &event);
}

static int listening(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (void *)&address, length) || listen(listener, 4096) ||
        getsockname(listener, (void *)&address, &length)) {
        perror("echo: listen");
        exit(1);
    }
    printf("%d\n", ntohs(address.sin_port));
    return listener;
}

static void accept_all(int listener, int with_tls) {
    for (;;) {
        int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
        if (socket < 0) return;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *c = checked(calloc(1, sizeof *c));
        c->socket = socket;
#ifdef WITH_TLS
        if (with_tls) {
            c->tls = checked(SSL_new(tls_context));
            SSL_set_fd(c->tls, socket);
            SSL_set_accept_state(c->tls);
        }
#endif
        (void)with_tls;
        watch(c, EPOLL_CTL_ADD);
    }
}

int main(int count, char **arguments) {
    struct epoll_event events[256], event = {.events = EPOLLIN};
    /* Buffers come from the heap and stay there, so that none is mapped again for each read. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    int listener = listening(), tls_listener = -1;
    if (count == 3) {
#ifdef WITH_TLS
        tls_context = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_mode(tls_context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (SSL_CTX_use_certificate_file(tls_context, arguments[1], SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls_context, arguments[2], SSL_FILETYPE_PEM) != 1) {
            ERR_print_errors_fp(stderr);
            return 1;
        }
        tls_listener = listening();
#else
        fprintf(stderr, "echo: compiled without TLS, so %s is of no use\n", arguments[1]);
        return 1;
#endif
    }
    fflush(stdout);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int *sources[] = {&listener, &tls_listener, &(int){STDIN_FILENO}};
    for (size_t i = 0; i < 3; i++) {
        event.data.ptr = sources[i];
        if (*sources[i] >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, *sources[i], &event)) {
            perror("echo: its standard input must be a pipe or a terminal");
            return 1;
        }
    }
    for (;;) {
        int ready = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            void *source = events[i].data.ptr;
            char byte;
            if (source == sources[2]) {
                if (read(STDIN_FILENO, &byte, 1) <= 0) return 0;
            } else if (source == sources[0] || source == sources[1]) {
                accept_all(*(int *)source, source == sources[1]);
            } else if (serve(source, events[i].events) == FAILS) {
                finish(source);
            } else {
                watch(source, EPOLL_CTL_MOD);
            }
        }
    }
}
