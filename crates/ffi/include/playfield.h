/* The C ABI of the Playfield client.
 *
 * Made by cbindgen from crates/ffi. `PLAYFIELD_WRITE_HEADER=1 cargo test -p playfield-ffi header`
 * makes it again.
 *
 * A function returns PF_CODE_OK or why it failed; pf_error_message says more. Handles are checked:
 * those that are 0, freed, or of another kind give an error code.
 *
 * Threads: any thread may call any function. pf_client_next and pf_client_next_many are for one thread
 * at a time for each client; they alone report what happened and move the states of rooms. What they
 * returned points to memory that is valid until the next such call; likewise texts in the state of a room
 * until PF_EVENT_KIND_STATE. A thread that reads them keeps others from calling it meanwhile.
 *
 * There are no callbacks, so nothing runs but in your calls. Sockets are served by one thread of
 * the library for all clients. A child process made by fork must not use the library. */

#ifndef PLAYFIELD_H
#define PLAYFIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A room that is created is neither listed nor entered by `pf_client_join_or_create`.
#define PF_CREATE_PRIVATE 1

// A room that is created gets a short code as its key, which `pf_room_get_info` tells.
#define PF_CREATE_CODE 2

// The most commands to a device that may wait for the program's answer. Past that the oldest is
// refused.
#define PF_COMMANDS_MAX 1024

// The most objects that all handles together may name.
#define PF_HANDLES_MAX (1 << 24)

// The most watches of a room.
#define PF_WATCHES_MAX 1024

// The most commands of a client that may wait for an answer, or for their turn.
#define PF_WAITING_MAX 65536

// What a function returns: 0, or why it failed. `pf_error_message` says more.
typedef enum pf_code {
    // Done.
    PF_CODE_OK = 0,
    // A pointer is null that must not be.
    PF_CODE_NULL = 1,
    // A handle was never given out, is 0, or is of another kind.
    PF_CODE_HANDLE = 2,
    // What the handle named was freed.
    PF_CODE_FREED = 3,
    // An argument is invalid: not UTF-8, not JSON, not a URL, out of its range.
    PF_CODE_ARGUMENT = 4,
    // The call does not make sense now, such as a join before the connection is there.
    PF_CODE_USAGE = 5,
    // Another thread is in `pf_client_next` of the same client.
    PF_CODE_IN_USE = 6,
    // A value has no such member or element.
    PF_CODE_NOT_FOUND = 7,
    // A value is of another kind, or does not fit the type that was asked for.
    PF_CODE_TYPE = 8,
    // The state has changed since the value was read, or the event it belongs to is over.
    PF_CODE_STALE = 9,
    // The connection has ended.
    PF_CODE_CLOSED = 10,
    // The node can't be reached, or did not answer in time.
    PF_CODE_UNREACHABLE = 11,
    // The node's TLS certificate is not accepted.
    PF_CODE_UNTRUSTED = 12,
    // The node or the room refused; the event's `reason` says why.
    PF_CODE_REFUSED = 13,
    // This client is not in the room.
    PF_CODE_LEFT = 14,
    // The answer was lost with the connection: it is unknown whether it was done.
    PF_CODE_LOST = 15,
    // Events or changes were missed.
    PF_CODE_MISSED = 16,
    // The node's types do not fit.
    PF_CODE_INCOMPATIBLE = 17,
    // The node did not answer in time.
    PF_CODE_TIMED_OUT = 18,
    // Too much waits: try again when some of it is done.
    PF_CODE_BUSY = 19,
    // The program gave no token.
    PF_CODE_NO_TOKEN = 20,
    // Something else failed; the message says what.
    PF_CODE_FAILED = 21,
    // The library has a bug, and has stopped at it. The handle is still valid.
    PF_CODE_PANIC = 22,
} pf_code;

// What happened.
typedef enum pf_event_kind {
    // Nothing, in the time given.
    PF_EVENT_KIND_NONE = 0,
    // The connection is there.
    PF_EVENT_KIND_CONNECTED = 1,
    // The connection was lost, `text` says why. The client connects again by itself. This event
    // and the others about a connection name its node in `name`, if a join was redirected to it;
    // the name of the node that the program has connected to is empty.
    PF_EVENT_KIND_LOST = 2,
    // An attempt to connect again failed; another follows.
    PF_EVENT_KIND_ATTEMPT_FAILED = 3,
    // The connection is restored, and the session continues. `number` is how long it was lost, in
    // milliseconds.
    PF_EVENT_KIND_RESUMED = 4,
    // The connection is restored, but the node no longer had the session: all rooms there have
    // ended. `number` is how many sends the node has not confirmed. If the connection to another
    // node has ended, `code` and `text` say why; the next join that is redirected there makes
    // another.
    PF_EVENT_KIND_NEW_SESSION = 5,
    // The connection has ended, or could not be made: `code` and `text` say why. The last event:
    // requests are answered before it, and rooms have ended. Requests that are made later fail.
    PF_EVENT_KIND_ENDED = 6,
    // The node is to be sent a token: answer with `pf_client_give_token`, and `request`.
    PF_EVENT_KIND_TOKEN_WANTED = 7,
    // The answer to `request`: a room was entered, or `code` says why not.
    PF_EVENT_KIND_JOINED = 8,
    // The answer to `request`: `value` is the reply, or `bytes` if the request was in `packed`, or
    // `code` says why there is none.
    PF_EVENT_KIND_REPLY = 9,
    // The state of `room` is another: what `pf_room_state` returns, of version `number`.
    PF_EVENT_KIND_STATE = 10,
    // A place in the state of `room` has changed that is watched by `watch`: `name` is its path,
    // `change` what happened, `old` and `value` the values before and after.
    PF_EVENT_KIND_CHANGE = 11,
    // An event of `room`: `name` and `value`, or `bytes` after `pf_room_set_packed`. `number` counts
    // the room's events from 1.
    PF_EVENT_KIND_EVENT = 12,
    // `number` events or changes of `room`, publications of `channel`, or commands to `device` were
    // missed.
    PF_EVENT_KIND_MISSED = 13,
    // `room` refused a send, or an event could not be read: `code` and `text` say why. Without a
    // room, the node refused a publication or a report that is unconfirmed.
    PF_EVENT_KIND_ERROR = 14,
    // This client is no longer in `room`: `reason` and `text` say why.
    PF_EVENT_KIND_LEFT = 15,
    // The answer to `request`: `channel` is subscribed to, or `code` says why not.
    PF_EVENT_KIND_SUBSCRIBING = 16,
    // The node has answered the subscription of `channel`, on the first or a later connection.
    // `change` is `PF_CHANGE_KIND_ENTERED` if nothing is missing, and `number` counts the members.
    PF_EVENT_KIND_SUBSCRIBED = 17,
    // A publication in `channel`: `value` if it is JSON, and `bytes`; `name` is the user, if known;
    // `number` its offset.
    PF_EVENT_KIND_PUBLICATION = 18,
    // Another session subscribes to `channel` now: `name`, `number` counts joins and leaves, and
    // `value` says who.
    PF_EVENT_KIND_MEMBER_JOINED = 19,
    // Another session subscribes to `channel` no longer.
    PF_EVENT_KIND_MEMBER_LEFT = 20,
    // The subscription of `channel` has ended: `reason` and `text` say why.
    PF_EVENT_KIND_UNSUBSCRIBED = 21,
    // The answer to `request`: this client is registered as `device`, or `code` says why not.
    PF_EVENT_KIND_REGISTERED = 22,
    // A command to `device`: `value` if it is JSON, and `bytes`. `number` is for
    // `pf_device_answer` and `pf_device_refuse`; 0 if no answer is wanted.
    PF_EVENT_KIND_COMMAND = 23,
    // The registration of `device` has ended: with the connection, because another call has taken
    // its place, or because the node has refused it in a new session.
    PF_EVENT_KIND_UNREGISTERED = 24,
    // The connection is weak: a room with ticks, and all else, was not heard for about a second.
    PF_EVENT_KIND_WEAK = 25,
    // The connection is no longer weak.
    PF_EVENT_KIND_BACK = 26,
} pf_event_kind;

// What happened at a place of a state.
typedef enum pf_change_kind {
    // Not a change.
    PF_CHANGE_KIND_NONE = 0,
    // A value is new, or came into view.
    PF_CHANGE_KIND_ENTERED = 1,
    // A value changed.
    PF_CHANGE_KIND_CHANGED = 2,
    // A value is gone, or left the view.
    PF_CHANGE_KIND_LEFT = 3,
    // An element moved within its list, from the index `number`.
    PF_CHANGE_KIND_MOVED = 4,
} pf_change_kind;

// What a value is.
typedef enum pf_kind {
    // There is none.
    PF_KIND_NONE = 0,
    // `null`: an `Option` without a value.
    PF_KIND_NULL = 1,
    // A boolean.
    PF_KIND_BOOL = 2,
    // A number.
    PF_KIND_NUMBER = 3,
    // A text. Bytes, integers past 2^53 and floats that are not finite are texts too.
    PF_KIND_TEXT = 4,
    // A list, array, tuple or set.
    PF_KIND_LIST = 5,
    // A struct or map.
    PF_KIND_MAP = 6,
} pf_kind;

// A setting. Those up to 9 are text, for `pf_client_set_text`; the others are numbers, for
// `pf_client_set_number`.
typedef enum pf_option {
    // The player's display name. Default: empty.
    PF_OPTION_NAME = 1,
    // The token for the node's authenticator. Default: empty.
    PF_OPTION_TOKEN = 2,
    // A certificate, in PEM or DER, to trust instead of the system's. May be set more than once.
    PF_OPTION_ROOT_CERTIFICATE = 4,
    // 1: the program is asked for each token (`PF_EVENT_KIND_TOKEN_WANTED`). Default: 0.
    PF_OPTION_TOKEN_WANTED = 10,
    // 1: over WebSocket, offers compression. Default: 0.
    PF_OPTION_DEFLATE = 11,
    // The longest message accepted from the node, in bytes. Default: 16 MiB.
    PF_OPTION_MESSAGE_BYTES_MAX = 12,
    // The most events and changes of a room that wait. Default: 16384.
    PF_OPTION_EVENTS_MAX = 13,
    // The most bytes of events that a room keeps past that number. Default: 1 MiB.
    PF_OPTION_EVENT_BYTES_MAX = 14,
    // The time limit for connecting, in milliseconds. Default: 10,000.
    PF_OPTION_TIMEOUT_MS = 15,
    // How long to try to restore a lost connection, in milliseconds; 0 does not try. Default:
    // 60,000.
    PF_OPTION_RECONNECT_TIMEOUT_MS = 16,
    // The wait before the first attempt to restore a connection, in milliseconds. Default: 100.
    PF_OPTION_BACKOFF_FIRST_MS = 17,
    // The longest wait between attempts, in milliseconds. Default: 5,000.
    PF_OPTION_BACKOFF_MOST_MS = 18,
    // The most bytes of events of a room, of a channel, or of commands to a device that wait,
    // however few they are, if that is more than `PF_OPTION_EVENT_BYTES_MAX`. Default: 64 MiB.
    PF_OPTION_QUEUE_BYTES_MAX = 20,
    // The time for which the connection to another node of a cluster outlasts the last room there,
    // in milliseconds. Default: 10,000.
    PF_OPTION_NODE_IDLE_MS = 21,
} pf_option;

// A client. Any thread may use it; `pf_client_next` is for one at a time.
typedef struct pf_client {
    // The handle; 0 is none.
    uint64_t id;
} pf_client;

// Text in UTF-8, without a zero at its end. `pf_str` makes one of a C string.
//
// As an argument it is copied before the function returns. A null pointer of length 0 is empty.
typedef struct pf_text {
    // The first byte.
    const uint8_t *data;
    // How many bytes.
    size_t length;
} pf_text;

// A channel that a client subscribes to.
typedef struct pf_channel {
    // The handle; 0 is none.
    uint64_t id;
} pf_channel;

// A room that a client is in.
typedef struct pf_room {
    // The handle; 0 is none.
    uint64_t id;
} pf_room;

// What a client is registered as.
typedef struct pf_device {
    // The handle; 0 is none.
    uint64_t id;
} pf_device;

// A value in a tree. It is checked: after its tree is gone it fails with `PF_CODE_STALE`.
//
// A room's state is gone when `pf_client_next` reports another (`PF_EVENT_KIND_STATE`), the values
// of an event with the next call of `pf_client_next`.
typedef struct pf_value {
    // The tree; 0 means no value.
    uint64_t tree;
    // The place in it.
    uint64_t node;
    // Shows that tree and place belong together.
    uint64_t check;
} pf_value;

// Something that happened. Texts and values are valid until the next `pf_client_next` or
// `pf_client_next_many` of the client.
typedef struct pf_event {
    // What happened.
    enum pf_event_kind kind;
    // 0, or why something failed.
    enum pf_code code;
    // What happened to the place, for `PF_EVENT_KIND_CHANGE`.
    enum pf_change_kind change;
    // The request that this answers.
    uint64_t request;
    // The watch that this is for.
    uint64_t watch;
    // A number; each kind says which.
    uint64_t number;
    // The version of the room's state that holds everything synced before.
    uint64_t version;
    // If `code` is not 0: how long to wait before asking again, in milliseconds; 0 if unknown.
    uint64_t retry_after_ms;
    // The room.
    struct pf_room room;
    // The channel.
    struct pf_channel channel;
    // The device.
    struct pf_device device;
    // A name or a path.
    struct pf_text name;
    // For people.
    struct pf_text text;
    // The protocol's name of an error, such as `room_full`.
    struct pf_text reason;
    // What the node or the room said itself, which is part of `text`.
    struct pf_text said;
    // A value.
    struct pf_value value;
    // The value before.
    struct pf_value old;
    // The payload of a publication, a command, or the reply to a report; what is in `packed`.
    struct pf_text bytes;
} pf_event;

// What a client has done, and how its connection is.
typedef struct pf_statistics {
    // The shortest round trip of the last eight pings, in microseconds; 0 if unknown.
    uint64_t round_trip_us;
    // The node's clock, in microseconds since it started; 0 if unknown.
    uint64_t node_time_us;
    // Requests that were made, joins and the like among them.
    uint64_t requests;
    // Requests that were answered.
    uint64_t answers;
    // Messages that were sent without an answer.
    uint64_t sends;
    // Events of rooms that were reported.
    uint64_t events;
    // Updates of states that were applied.
    uint64_t updates;
    // Publications that were reported.
    uint64_t publications;
    // How often the connection was restored.
    uint64_t reconnects;
    // Requests and sends that wait.
    uint64_t waiting;
    // Rooms that the program holds.
    uint64_t rooms;
    // The connection to the first node is there: not lost, and not at its end.
    bool is_connected;
} pf_statistics;

// What is known of a registration.
typedef struct pf_device_info {
    // The device's id. Valid until the device is freed.
    struct pf_text id;
    // Whether no device was registered under the id before.
    bool is_new;
    // Whether the payloads of the fleet are bytes, and not JSON.
    bool is_bytes;
} pf_device_info;

// What the node said about a room.
typedef struct pf_room_info {
    // This client's player in the room.
    uint64_t player;
    // The version of the state; 0 if there is none.
    uint64_t version;
    // Ticks per second.
    uint32_t tick_hz;
    // Syncs per second; 0 if the room sends a patch after each change.
    uint32_t sync_hz;
    // The room's id, by which others can join it. Valid until the room is freed.
    struct pf_text id;
    // The room's type. Valid until the room is freed.
    struct pf_text room_type;
    // The room's key or code; empty if it has none. Valid until the room is freed.
    struct pf_text key;
    // The address of the room's node; empty if it is the one that the client has connected to.
    // Valid until the room is freed.
    struct pf_text node;
} pf_room_info;

// A tree of your own, made by `pf_json_parse`. Free it with `pf_tree_free`.
typedef struct pf_tree {
    // The handle; 0 is none.
    uint64_t id;
} pf_tree;

// A member of a map, or an element of a list.
typedef struct pf_entry {
    // The member's name; empty for an element.
    struct pf_text key;
    // The value.
    struct pf_value value;
} pf_entry;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Subscribes to a channel, whose handle `PF_EVENT_KIND_SUBSCRIBING` has. After a position that
// `pf_channel_position` gave, it goes on from there; the `epoch` 0 is none. If `presence` is true,
// reports who else subscribes.
//
// # Safety
// `name` points to text, `request` to a place.
enum pf_code pf_client_subscribe(struct pf_client client,
                                 struct pf_text name,
                                 bool presence,
                                 uint64_t epoch,
                                 uint64_t offset,
                                 uint64_t *request);

// Publishes to a channel; the reply is the publication's offset. `payload` is JSON, or bytes if
// `is_bytes`, as the channel's rule says.
//
// # Safety
// `name` and `payload` point to text, `request` to a place.
enum pf_code pf_client_publish(struct pf_client client,
                               struct pf_text name,
                               struct pf_text payload,
                               bool is_bytes,
                               uint64_t *request);

// Publishes to a channel, without a reply. If the node refuses it, `PF_EVENT_KIND_ERROR` says so.
//
// # Safety
// `name` and `payload` point to text.
enum pf_code pf_client_publish_unconfirmed(struct pf_client client,
                                           struct pf_text name,
                                           struct pf_text payload,
                                           bool is_bytes);

// Asks who subscribes to a channel. The reply has `sequence`, `count` and `members`, each with
// `session`, `user` and `name`.
//
// # Safety
// `name` points to text, `request` to a place.
enum pf_code pf_client_members(struct pf_client client, struct pf_text name, uint64_t *request);

// Asks for at most `limit` publications of a channel after a position, the oldest first; 0 means
// the node's limit, and the `epoch` 0 all. The reply has `epoch` and `offset` of the last, and
// `publications`, each with `offset`, `user`, `payload` (if it is JSON) and `bytes`.
//
// # Safety
// `name` points to text, `request` to a place.
enum pf_code pf_client_history(struct pf_client client,
                               struct pf_text name,
                               uint64_t epoch,
                               uint64_t offset,
                               uint32_t limit,
                               uint64_t *request);

// Sets `epoch` and `offset` to the place of the last publication that was reported; both are 0 if
// there is none.
//
// # Safety
// `epoch` and `offset` point to places.
enum pf_code pf_channel_position(struct pf_channel channel, uint64_t *epoch, uint64_t *offset);

// Frees a channel, and ends the subscription. Nothing more is reported of it.
enum pf_code pf_channel_free(struct pf_channel channel);

// Makes a client for the node at a URL: `tcp://host:port`, `tls://host:port`,
// `ws://host:port/path` or `wss://host:port/path`. Nothing is connected until `pf_client_connect`.
//
// # Safety
// `url` points to text, `out` to a place.
enum pf_code pf_client_new(struct pf_text url, struct pf_client *out);

// Begins to connect. `PF_EVENT_KIND_CONNECTED` follows, or `PF_EVENT_KIND_ENDED`.
enum pf_code pf_client_connect(struct pf_client client);

// Waits for the next event, for at most `timeout_ms` milliseconds; 0 does not wait. If there is
// none, `event` is of `PF_EVENT_KIND_NONE`. What the event before pointed to is gone.
//
// A game calls this in each frame until there is none.
//
// # Errors
// `PF_CODE_IN_USE` if another thread is in it; `PF_CODE_FREED` if another thread freed the client.
//
// # Safety
// `event` points to a place.
enum pf_code pf_client_next(struct pf_client client, uint32_t timeout_ms, struct pf_event *event);

// Does the same for several events: writes up to `capacity` of them, and sets `count` to how many.
// Only replies, and events of rooms in `packed`, come together; all else comes alone. So states
// move only in this call, what is set after `PF_EVENT_KIND_JOINED` holds for all events of the
// room, and
// `pf_room_set_packed` for all events that were not taken. Events of a room that was freed since
// remain in the array.
//
// # Safety
// `events` points to `capacity` places, which need not be initialized; `count` to a place.
enum pf_code pf_client_next_many(struct pf_client client,
                                 uint32_t timeout_ms,
                                 struct pf_event *events,
                                 size_t capacity,
                                 size_t *count);

// Has `pf_client_next` of another thread return at once; or the next call, if none is in it.
enum pf_code pf_client_wake(struct pf_client client);

// Holds back what is sent from now on, or lets it go. What a program sends while it handles
// several events then leaves in one write, which takes less time. `pf_client_next` lets it go
// before it waits, and the library's thread when the program has not polled for 200 ms: so the
// connection lives on.
enum pf_code pf_client_cork(struct pf_client client, bool is_corked);

// Answers `PF_EVENT_KIND_TOKEN_WANTED`.
//
// # Safety
// `token` points to bytes.
enum pf_code pf_client_give_token(struct pf_client client, uint64_t request, struct pf_text token);

// Says goodbye, to all nodes. What was sent before is delivered. `PF_EVENT_KIND_ENDED` follows,
// within 5 seconds.
enum pf_code pf_client_close(struct pf_client client);

// Frees a client, with its rooms and channels, from any thread. If it is connected, it says
// goodbye in the background. Requests without an answer get none.
enum pf_code pf_client_free(struct pf_client client);

// What the client has done, and how its connection is.
//
// # Safety
// `out` points to a place.
enum pf_code pf_client_statistics(struct pf_client client, struct pf_statistics *out);

// Stops the library's thread, and waits for it: before the library is unloaded, or so that a leak
// checker finds nothing. The goodbyes of clients that were freed have 100 ms. The next
// `pf_client_connect` starts the thread again.
//
// # Errors
// `PF_CODE_USAGE` if there are clients that have connected, also those whose connection has ended:
// free them first. Nothing is done then.
enum pf_code pf_shut_down(void);

// Enters an existing room, by its id, or with a reservation or a ticket for it. Like all that
// enter rooms, it is answered by `PF_EVENT_KIND_JOINED`, whose `room` is to be freed. If the room
// is at another node of a cluster, the client connects to that node too.
//
// # Safety
// `room_id` points to text, `request` to a place.
enum pf_code pf_client_join(struct pf_client client, struct pf_text room_id, uint64_t *request);

// Enters the room of a type that has this key or code.
//
// # Safety
// `room_type` and `key` point to text, `request` to a place.
enum pf_code pf_client_join_by_key(struct pf_client client,
                                   struct pf_text room_type,
                                   struct pf_text key,
                                   uint64_t *request);

// Enters the room of a type that has this key, or a new one; without a key, any that is not full.
// `options` is JSON, and may be empty.
//
// # Safety
// `room_type`, `key` and `options` point to text, `request` to a place.
enum pf_code pf_client_join_or_create(struct pf_client client,
                                      struct pf_text room_type,
                                      struct pf_text key,
                                      struct pf_text options,
                                      uint64_t *request);

// Creates a room, and enters it. `flags` are `PF_CREATE_PRIVATE` and `PF_CREATE_CODE`; `key` and
// `options`, which is JSON, may be empty.
//
// # Safety
// `room_type`, `key` and `options` point to text, `request` to a place.
enum pf_code pf_client_create(struct pf_client client,
                              struct pf_text room_type,
                              uint32_t flags,
                              struct pf_text key,
                              struct pf_text options,
                              uint64_t *request);

// Lists at most `limit` rooms, 0 means the node's limit: of a type, or of all if it is empty,
// whose metadata has all members of the JSON object `filter`, which may be empty. The reply is a
// list of maps with `id`, `room_type`, `key`, `players`, `capacity`, `locked` and `metadata`.
//
// # Safety
// `room_type` and `filter` point to text, `request` to a place.
enum pf_code pf_client_list(struct pf_client client,
                            struct pf_text room_type,
                            struct pf_text filter,
                            uint32_t limit,
                            uint64_t *request);

// Asks for the node's schema of a room type; the reply is its JSON.
//
// # Safety
// `room_type` points to text, `request` to a place.
enum pf_code pf_client_schema(struct pf_client client, struct pf_text room_type, uint64_t *request);

// Measures the round trip to the node; the reply is in microseconds.
//
// # Safety
// `request` points to a place.
enum pf_code pf_client_ping(struct pf_client client, uint64_t *request);

// The network has changed, or this device was asleep: checks the connection now.
enum pf_code pf_client_suspect(struct pf_client client);

// Registers this client's session as a device; `PF_EVENT_KIND_REGISTERED` has its handle, which is
// to be freed. `metadata` is a JSON object whose members are strings, `tags` a JSON list of
// strings; both may be empty. In a new session the client registers again by itself. Another call
// takes the place of this registration.
//
// # Safety
// `device`, `metadata` and `tags` point to text, `request` to a place.
enum pf_code pf_client_register(struct pf_client client,
                                struct pf_text device,
                                struct pf_text metadata,
                                struct pf_text tags,
                                uint64_t *request);

// Sets `out` to what is known of a device.
//
// # Safety
// `out` points to a place.
enum pf_code pf_device_get_info(struct pf_device device, struct pf_device_info *out);

// Sends a report; `PF_EVENT_KIND_REPLY` has the fleet's reply. `payload` is JSON, or bytes if
// `is_bytes`, as the fleet's payloads are.
//
// # Safety
// `payload` points to text, `request` to a place.
enum pf_code pf_device_report(struct pf_device device,
                              struct pf_text payload,
                              bool is_bytes,
                              uint64_t *request);

// Sends a report without a reply. If it is refused, `PF_EVENT_KIND_ERROR` says so.
//
// # Safety
// `payload` points to text.
enum pf_code pf_device_report_unconfirmed(struct pf_device device,
                                          struct pf_text payload,
                                          bool is_bytes);

// Answers the command of this number, which `PF_EVENT_KIND_COMMAND` had. Nothing happens if the
// session in which it came is over.
//
// # Safety
// `payload` points to text.
enum pf_code pf_device_answer(struct pf_device device,
                              uint64_t number,
                              struct pf_text payload,
                              bool is_bytes);

// Refuses the command of this number, with a reason.
//
// # Safety
// `why` points to text.
enum pf_code pf_device_refuse(struct pf_device device, uint64_t number, struct pf_text why);

// Frees a device. The node refuses requests to it from then on; the registration ends with the
// session. Nothing more is reported of it but answers to requests.
enum pf_code pf_device_free(struct pf_device device);

// The message of the last call on this thread that failed: what was wrong, with which value, and
// what to do. Empty if none has. Valid until the next call on this thread that fails.
struct pf_text pf_error_message(void);

// Sets `out` to the state's root, which is current until `pf_client_next` reports
// `PF_EVENT_KIND_STATE` of the room.
//
// # Safety
// `out` points to a place.
enum pf_code pf_room_state(struct pf_room room, struct pf_value *out);

// Sets `out` to what is known of a room.
//
// # Safety
// `out` points to a place.
enum pf_code pf_room_get_info(struct pf_room room, struct pf_room_info *out);

// Sets `out` to all that the node said of a room when this client joined it: a map of the fields
// of
// `joined` in docs/protocol.md, by their names. Valid until the room is freed.
//
// # Safety
// `out` points to a place.
enum pf_code pf_room_joined(struct pf_room room, struct pf_value *out);

// Sends the message of this name, without a reply. `json` is the message; empty if it has no
// members. If the room refuses it, `PF_EVENT_KIND_ERROR` says so.
//
// # Safety
// `name` and `json` point to text.
enum pf_code pf_room_send(struct pf_room room, struct pf_text name, struct pf_text json);

// Sends the message of this name, without a reply, as `pf_room_send` does. `packed` is the message
// in `packed`: its fields in the order of the room's schema (docs/state.md). Nothing is converted,
// so this takes a fraction of the time.
//
// # Errors
// `PF_CODE_FAILED` if the room has no such message, or the bytes are not one; `pf_error_message`
// says at which byte.
//
// # Safety
// `name` points to text, `packed` to bytes.
enum pf_code pf_room_send_packed(struct pf_room room, struct pf_text name, struct pf_text packed);

// Sends the message of this name; `PF_EVENT_KIND_REPLY` has the reply.
//
// # Safety
// `name` and `json` point to text, `request` to a place.
enum pf_code pf_room_request(struct pf_room room,
                             struct pf_text name,
                             struct pf_text json,
                             uint64_t *request);

// Sends the message of this name, in `packed` as for `pf_room_send_packed`. `PF_EVENT_KIND_REPLY`
// has the reply in `packed`, as its `bytes`, or says why the message was not sent.
//
// # Safety
// `name` points to text, `packed` to bytes, `request` to a place.
enum pf_code pf_room_request_packed(struct pf_room room,
                                    struct pf_text name,
                                    struct pf_text packed,
                                    uint64_t *request);

// Has the events of this name come in `packed`, as `bytes` and without a `value`, or again as
// values. Those that wait for `pf_client_next` count too.
//
// # Errors
// `PF_CODE_NOT_FOUND` if the room has no such event.
//
// # Safety
// `name` points to text.
enum pf_code pf_room_set_packed(struct pf_room room, struct pf_text name, bool is_packed);

// Reports changes at places that match a pattern, such as `players.*.hp` or `**`, as
// `PF_EVENT_KIND_CHANGE`, after the state has moved. Watching begins with the state as it is.
//
// # Safety
// `pattern` points to text, `watch` to a place.
enum pf_code pf_room_watch(struct pf_room room, struct pf_text pattern, uint64_t *watch);

// Ends a watch: nothing more is reported of it.
enum pf_code pf_room_unwatch(struct pf_room room, uint64_t watch);

// Leaves a room; `PF_EVENT_KIND_REPLY` confirms it. Free the handle too.
//
// # Safety
// `request` points to a place.
enum pf_code pf_room_leave(struct pf_room room, uint64_t *request);

// Frees a room, and leaves it if this client is still in it. Nothing more is reported of it but
// answers to requests.
enum pf_code pf_room_free(struct pf_room room);

// Makes a setting that is text: a `pf_option` up to 9.
//
// # Safety
// `value` points to text.
enum pf_code pf_client_set_text(struct pf_client client, uint32_t option, struct pf_text value);

// Makes a setting that is a number: a `pf_option` from 10.
enum pf_code pf_client_set_number(struct pf_client client, uint32_t option, uint64_t value);

// Parses JSON. `out` is set to a tree, whose root is a value.
//
// # Safety
// `text` points to text; `out` and `root` point to places.
enum pf_code pf_json_parse(struct pf_text text, struct pf_tree *out, struct pf_value *root);

// Keeps a value: `out` is set to a tree of your own with a copy of it, which is `root`.
//
// # Safety
// `out` and `root` point to places.
enum pf_code pf_value_keep(struct pf_value value, struct pf_tree *out, struct pf_value *root);

// Frees a tree. Its values are stale then.
enum pf_code pf_tree_free(struct pf_tree tree);

// What a value is. `PF_KIND_NONE` if it is stale, or there is none.
enum pf_kind pf_value_kind(struct pf_value value);

// How many members or elements a value has; 0 if it is neither a map nor a list.
size_t pf_value_size(struct pf_value value);

// Sets `out` to the value at a path from this one: names and indexes with dots between them, such
// as `players.7.hp`. A name with other characters than letters, digits, `_` and `-` is quoted as
// in JSON. An empty path is the value itself.
//
// # Errors
// `PF_CODE_NOT_FOUND` if there is none.
//
// # Safety
// `path` points to text, `out` to a place.
enum pf_code pf_value_get(struct pf_value value, struct pf_text path, struct pf_value *out);

// Sets `out` to the member of this name, which is not a path.
//
// # Errors
// `PF_CODE_NOT_FOUND` if there is none.
//
// # Safety
// `name` points to text, `out` to a place.
enum pf_code pf_value_member(struct pf_value value, struct pf_text name, struct pf_value *out);

// Fills `entries` with the members or elements of a value, from the one at `first`: at most
// `capacity`. `written` is set to how many. Maps are in the order of their names.
//
// # Safety
// `entries` points to `capacity` places, `written` to one.
enum pf_code pf_value_entries(struct pf_value value,
                              size_t first,
                              struct pf_entry *entries,
                              size_t capacity,
                              size_t *written);

// Reads a boolean.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_bool(struct pf_value value, bool *out);

// Reads a signed integer, also of the text that one past 2^53 is.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_i64(struct pf_value value, int64_t *out);

// Reads an unsigned integer, also of the text that one past 2^53 is.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_u64(struct pf_value value, uint64_t *out);

// Reads a number, also one that is not finite.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_f64(struct pf_value value, double *out);

// Reads a text in place: it is valid until the value is stale.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_text(struct pf_value value, struct pf_text *out);

// Decodes bytes, which are base64 in a value. Valid until this thread's next call that returns
// text made for it.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_bytes(struct pf_value value, struct pf_text *out);

// Writes a value as JSON. Valid until this thread's next call that returns text made for it.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_json(struct pf_value value, struct pf_text *out);

// Sets `out` to whether two values are equal.
//
// # Safety
// `out` points to a place.
enum pf_code pf_value_equal(struct pf_value a, struct pf_value b, bool *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PLAYFIELD_H */

/* The text of a C string, which may be null. */
static inline pf_text pf_str(const char *text) {
    pf_text found;
    found.data = (const uint8_t *)text;
    found.length = text ? strlen(text) : 0;
    return found;
}
