// A client of a node: its connection, rooms and channels. All of it happens in poll().

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "future.hpp"
#include "json.hpp"
#include "packed.hpp"
#include "value.hpp"

namespace playfield {

class Room;
class Channel;
class Device;

using ChangeKind = pf_change_kind;
using Statistics = pf_statistics;

/// What a client connects with.
struct Options {
    // Each has an initializer, so that `Options{.url = "…"}` compiles without a warning.

    /// `tcp://host:port`, `tls://host:port`, `ws://host:port/path` or `wss://host:port/path`.
    std::string url{};
    /// The player's display name.
    std::string name{};
    /// The token for the node's authenticator.
    std::string token{};
    /// Gives the token, in poll(), for the first connection, and later when the node has refused the
    /// one before, or shortly before the `exp` of a JSON Web Token; none if there is none now.
    std::function<std::optional<std::string>()> token_by{};
    /// Certificates to trust instead of the system's, in PEM or DER.
    std::vector<std::string> root_certificates{};
    /// Over WebSocket, offers compression.
    bool deflate = false;
    /// The time limit for connecting.
    std::optional<std::chrono::milliseconds> timeout{};
    /// How long to try to restore a lost connection; zero does not try.
    std::optional<std::chrono::milliseconds> reconnect_timeout{};
    /// The wait before the first attempt to restore it, which doubles with each up to the second.
    std::optional<std::chrono::milliseconds> backoff_first{}, backoff_most{};
    /// The longest message accepted from the node.
    std::optional<std::size_t> message_bytes_max{};
    /// The most events and changes of a room that wait for poll().
    std::optional<std::size_t> events_max{};
    /// The most bytes of events of a room, of a channel, or of commands to a device that wait for
    /// poll(), however few they are, if that is more than 1 MiB.
    std::optional<std::size_t> queue_bytes_max{};
    /// The time for which the connection to another node of a cluster outlasts the last room there.
    std::optional<std::chrono::milliseconds> node_idle{};
};

/// How a room is created.
class Creation {
public:
    // Not an aggregate: in a co_await, GCC 12 copies braced temporaries of aggregates wrongly.
    Creation() {}

    /// Neither listed nor entered by `join_or_create`.
    bool is_private = false;
    /// The node picks a short code as the key.
    bool code = false;
    std::string key;
    std::optional<Json> options;
};

/// An event of a room. What it refers to is valid until its callback returns.
struct RoomEvent {
    std::string_view name;
    Value value;
    /// Counts the room's events, from 1.
    std::uint64_t sequence;
    /// Why the value can't be read; none if it can.
    std::optional<Error> error;
    /// The payload in `packed`, instead of the value, of events that `on_packed` is called for.
    std::span<const std::byte> bytes;
};

/// A place of a state that changed. What it refers to is valid until its callback returns.
struct Change {
    /// Such as `players.7.hp`.
    std::string_view path;
    ChangeKind kind;
    Value before;
    Value after;
    /// The element's index before, if it moved.
    std::uint64_t moved_from;
};

/// A publication of a channel. What it refers to is valid until its callback returns.
struct Publication {
    std::uint64_t offset;
    /// The verified user who published it; empty if unknown.
    std::string_view user;
    /// The payload, if it is JSON.
    Value value;
    std::span<const std::byte> bytes;
};

/// The place of a publication, to go on from.
struct Position {
    std::uint64_t epoch = 0;
    std::uint64_t offset = 0;
};

class Command;

/// What a client registers as.
class Registration {
public:
    // Not an aggregate, as Creation.
    explicit Registration(std::string device) : id(std::move(device)) {}

    std::string id;
    /// By which the fleet finds it.
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<std::string> tags;
};

namespace detail {

/// The value of an answer; none if it has none.
inline Result<Document> document_of(const pf_event &event) {
    if (event.value.tree == 0) return Document();
    return Value(event.value).keep();
}

inline std::span<const std::byte> bytes_of(const pf_event &event) {
    return std::as_bytes(std::span(event.bytes.data, event.bytes.length));
}

inline Error error_of(const pf_event &event) {
    return Error{event.code, std::string(view(event.text)), std::string(view(event.reason)),
                 std::string(view(event.said)), std::chrono::milliseconds(event.retry_after_ms)};
}

/// Calls of which all are made, whatever one throws. The first exception is thrown at the end.
class AllOf {
public:
    template <class Call> void run(Call call) {
#if PLAYFIELD_EXCEPTIONS
        try {
            call();
        } catch (...) {
            if (!first_) first_ = std::current_exception();
        }
#else
        call();
#endif
    }
    void rethrow() {
#if PLAYFIELD_EXCEPTIONS
        if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
#endif
    }

private:
#if PLAYFIELD_EXCEPTIONS
    std::exception_ptr first_;
#endif
};

/// A function that may be replaced while it runs.
template <class... Args> class Hook {
public:
    void set(std::function<void(Args...)> call) {
        call_ = call ? std::make_shared<const std::function<void(Args...)>>(std::move(call)) : nullptr;
    }
    void operator()(Args... args) const {
        if (auto call = call_) (*call)(args...);
    }

private:
    std::shared_ptr<const std::function<void(Args...)>> call_;
};

/// A request without an answer.
struct Pending {
    virtual ~Pending() = default;
    virtual void answer(const pf_event &event) = 0;
    virtual void fail(Error error) = 0;
};

struct RoomCore;
struct ChannelCore;
struct DeviceCore;

/// The most events that are taken together.
inline constexpr std::size_t taken_max = 64;

struct Core : Pump, std::enable_shared_from_this<Core> {
    pf_client handle{};
    /// The events that were taken last, and which of them are to be dispatched.
    std::unique_ptr<pf_event[]> taken;
    std::size_t next_taken = 0, taken_end = 0;
    /// The names whose `on_packed` was removed since, which is called for these events still.
    std::vector<std::pair<std::weak_ptr<RoomCore>, std::string>> unset;
    bool is_freed = false;
    /// Atomic, so that another thread that polls is noticed.
    std::atomic<bool> is_polling = false;
    using AllPending = std::unordered_map<std::uint64_t, std::shared_ptr<Pending>>;
    AllPending pending;
    /// The place of an answered request, for the next one.
    AllPending::node_type spare;
    std::unordered_map<std::uint64_t, std::weak_ptr<RoomCore>> rooms;
    std::unordered_map<std::uint64_t, std::weak_ptr<ChannelCore>> channels;
    std::unordered_map<std::uint64_t, std::weak_ptr<DeviceCore>> devices;
    /// Held while it runs: it may free the client, and has a state of its own.
    std::shared_ptr<std::function<std::optional<std::string>()>> token_by;
    std::shared_ptr<FutureState<void>> connecting;
    /// Those that close() has returned.
    std::vector<std::shared_ptr<FutureState<void>>> closing;
    bool has_ended = false;
    Hook<const Error &> lost, attempt_failed, ended, refused;
    Hook<std::chrono::milliseconds> resumed;
    Hook<std::uint64_t> new_session;
    Hook<bool> weak;

    ~Core() override {
        is_freed = true;
        release();
        // A destructor can't pass on what callbacks throw.
        AllOf all;
        fail_all(Error{PF_CODE_FREED, "the client was freed"}, all);
    }

    Result<std::size_t> pump(std::chrono::milliseconds wait) override { return poll(wait, 1); }
    inline Result<std::size_t> poll(std::chrono::milliseconds wait, std::size_t most);
    inline void dispatch(const pf_event &event);
    /// Drops the functions of `unset`.
    inline void drop_unset();
    inline void dispatch_answer(const pf_event &event);
    /// Calls the function for an event of this name, which may have freed the client before.
    template <class Hooks, class Payload>
    void call_named(Hooks &hooks, const pf_event &event, AllOf &all, Payload payload) {
        auto named = hooks.find(view(event.name));
        if (named == hooks.end() || is_freed) return;
        auto call = named->second;
        all.run([&] { call(std::move(payload)); });
    }

    /// Frees the client, at once or after the callback that this is called in. Requests fail.
    void free() {
        if (std::exchange(is_freed, true)) return;
        auto self = shared_from_this();
        if (!is_polling) release();
        AllOf all;
        fail_all(Error{PF_CODE_FREED, "the client was freed"}, all);
        forget();
        all.rethrow();
    }

    void fail_all(const Error &error, AllOf &all) {
        auto failed = std::exchange(pending, {});
        for (auto &[request, waiting] : failed) {
            all.run([&] { waiting->fail(error); });
        }
        if (auto state = std::exchange(connecting, nullptr)) {
            all.run([&] { state->complete(error); });
        }
        complete_closing(all);
    }
    void complete_closing(AllOf &all) {
        for (auto &state : std::exchange(closing, {})) {
            all.run([&] { state->complete({}); });
        }
    }
    /// Drops all callbacks: they may hold the client, its rooms, channels and devices.
    inline void forget();

    /// Begins to report what happens to a room, a channel or a device.
    template <class T, class Handle>
    std::shared_ptr<T> hold(std::unordered_map<std::uint64_t, std::weak_ptr<T>> &all, Handle of) {
        auto held = std::make_shared<T>();
        held->client = shared_from_this();
        held->handle = of;
        all[of.id] = held;
        return held;
    }

    void release() {
        if (handle.id != 0) (void)pf_client_free(std::exchange(handle, pf_client{}));
    }

    void wait_for(std::uint64_t request, std::shared_ptr<Pending> waiting) {
        if (spare.empty()) return void(pending.emplace(request, std::move(waiting)));
        spare.key() = request;
        spare.mapped() = std::move(waiting);
        pending.insert(std::move(spare));
    }

    /// Makes a request: calls a function that stores its number. `make` is called in poll() only.
    template <class T, class Call, class Make> Future<T> ask(Call call, Make make) {
        struct Request : FutureState<T>, Pending {
            Make make;
            explicit Request(Make making) : make(std::move(making)) {}
            void answer(const pf_event &event) override {
                if (event.code != PF_CODE_OK) return this->complete(error_of(event));
                this->complete(make(event));
            }
            void fail(Error error) override { this->complete(std::move(error)); }
        };
        auto state = std::make_shared<Request>(std::move(make));
        state->pump = weak_from_this();
        std::uint64_t request = 0;
        if (is_freed) {
            state->fail(Error{PF_CODE_FREED, "the client was freed"});
        } else if (pf_code code = call(&request); code != PF_CODE_OK) {
            state->fail(last_error(code));
        } else {
            wait_for(request, state);
        }
        return Future<T>(std::move(state));
    }

    /// The same for a function that is called with the bytes of the answer.
    template <class Call, class Then> void ask_by(Call call, Then then) {
        struct Request : Pending {
            Then then;
            explicit Request(Then made) : then(std::move(made)) {}
            void answer(const pf_event &event) override {
                if (event.code != PF_CODE_OK) return then(Result<PackedReader>(error_of(event)));
                then(Result<PackedReader>(PackedReader(bytes_of(event))));
            }
            void fail(Error error) override { then(Result<PackedReader>(std::move(error))); }
        };
        std::uint64_t request = 0;
        if (is_freed) {
            then(Result<PackedReader>(Error{PF_CODE_FREED, "the client was freed"}));
        } else if (pf_code code = call(&request); code != PF_CODE_OK) {
            then(Result<PackedReader>(last_error(code)));
        } else {
            wait_for(request, std::make_shared<Request>(std::move(then)));
        }
    }
};

/// Texts as keys, which are found by a view.
template <class T> using ByName = std::map<std::string, T, std::less<>>;

struct RoomCore : std::enable_shared_from_this<RoomCore> {
    std::shared_ptr<Core> client;
    pf_room handle{};
    std::uint64_t player = 0;
    std::string id, type, key, node;
    Hook<const RoomEvent &> events;
    ByName<Hook<Value>> events_by_name;
    ByName<Hook<PackedReader>> packed_by_name;
    std::unordered_map<std::uint64_t, Hook<const Change &>> watches;
    Hook<> state;
    Hook<const Error &> left, refused;
    Hook<std::uint64_t> missed;
    std::optional<Error> ending;

    void forget() {
        events = {};
        events_by_name.clear();
        packed_by_name.clear();
        watches.clear();
        state = {};
        left = refused = {};
        missed = {};
    }
    ~RoomCore() {
        if (!client->is_freed) client->rooms.erase(handle.id);
        (void)pf_room_free(handle);
    }
};

/// Makes a request of a room.
struct PackedRequest {
    pf_room room;
    std::string_view message;
    std::span<const std::byte> payload;

    pf_code operator()(std::uint64_t *request) const {
        return pf_room_request_packed(room, text(message), text(payload), request);
    }
};

struct ChannelCore {
    std::shared_ptr<Core> client;
    pf_channel handle{};
    std::string name;
    Hook<const Publication &> publications;
    Hook<bool, std::uint64_t> subscribed;
    Hook<std::string_view, bool> presence;
    Hook<std::uint64_t> missed;
    Hook<const Error &> unsubscribed;

    void forget() {
        publications = {};
        subscribed = {};
        presence = {};
        missed = {};
        unsubscribed = {};
    }
    ~ChannelCore() {
        if (!client->is_freed) client->channels.erase(handle.id);
        (void)pf_channel_free(handle);
    }
};

struct DeviceCore {
    std::shared_ptr<Core> client;
    pf_device handle{};
    std::string id;
    bool is_new = false, is_bytes = false;
    Hook<Command> commands;
    Hook<std::uint64_t> missed;
    Hook<> unregistered;

    void forget() {
        commands = {};
        missed = {};
        unregistered = {};
    }
    ~DeviceCore() {
        if (!client->is_freed) client->devices.erase(handle.id);
        (void)pf_device_free(handle);
    }
};

inline void Core::forget() {
    token_by = nullptr;
    lost = attempt_failed = ended = refused = {};
    resumed = {};
    new_session = {};
    weak = {};
    // Each is held while its callbacks go: they may have held the last reference to it.
    auto each = [](auto &cores) {
        for (auto &[number, core] : std::exchange(cores, {})) {
            if (auto held = core.lock()) held->forget();
        }
    };
    each(rooms);
    each(channels);
    each(devices);
}

/// Refers to what a program holds, or to nothing: then calls fail, as those with a handle of 0.
template <class T> class Ref {
public:
    Ref() = default;
    Ref(std::shared_ptr<T> held) : held_(std::move(held)) {}

    explicit operator bool() const { return held_ != nullptr; }
    T *operator->() const { return shared().get(); }
    const std::shared_ptr<T> &shared() const { return held_ ? held_ : nothing(); }

private:
    /// It never changes, and outlives all that is static.
    static const std::shared_ptr<T> &nothing() {
        static const auto *none = [] {
            auto made = std::make_shared<T>();
            if constexpr (requires { made->client; }) made->client = Ref<Core>().shared();
            return new std::shared_ptr<T>(std::move(made));
        }();
        return *none;
    }

    std::shared_ptr<T> held_;
};

} // namespace detail

/// A room that this client is in, with a copy of its state. Copies refer to the same room; when the
/// last is gone, the client leaves the room.
class Room {
public:
    Room() = default;
    explicit Room(std::shared_ptr<detail::RoomCore> core) : core_(std::move(core)) {}
    explicit operator bool() const { return bool(core_); }

    /// The id, by which others can join the room.
    const std::string &id() const { return core_->id; }
    const std::string &type() const { return core_->type; }
    /// The key or code; empty if the room has none.
    const std::string &key() const { return core_->key; }
    /// The address of the room's node; empty if it is the one that the client has connected to.
    const std::string &node() const { return core_->node; }
    /// This client's player.
    std::uint64_t player() const { return core_->player; }

    /// All that the node said of the room when this client joined it: the fields of `joined` in
    /// docs/protocol.md, by their names, such as `info()["tick_hz"]`.
    Value info() const {
        pf_value joined{};
        (void)pf_room_joined(core_->handle, &joined);
        return Value(joined);
    }

    /// The copy of the state, which changes only in poll().
    Value state() const {
        pf_value root{};
        (void)pf_room_state(core_->handle, &root);
        return Value(root);
    }

    /// The version of the copy.
    std::uint64_t version() const {
        pf_room_info info{};
        (void)pf_room_get_info(core_->handle, &info);
        return info.version;
    }

    /// Sends a message without a reply. If the room refuses it, `on_refused` is called.
    Result<void> send(std::string_view message, const Json &payload = {}) {
        // In a callback that has freed the client, which is released after it.
        if (core_->client->is_freed) return Error{PF_CODE_FREED, "the client was freed"};
        return detail::check(
            pf_room_send(core_->handle, detail::text(message), detail::text(payload.text())));
    }

    /// Sends a message; the result is the reply.
    Future<Document> request(std::string_view message, const Json &payload = {}) {
        return core_->client->ask<Document>(
            [&](std::uint64_t *request) {
                return pf_room_request(core_->handle, detail::text(message),
                                       detail::text(payload.text()), request);
            },
            detail::document_of);
    }

    /// Sends a message in `packed`, which takes a fraction of the time, as nothing is converted. It is
    /// refused here if the room's schema has no such message, or the bytes are not one.
    Result<void> send_packed(std::string_view message, const PackedWriter &payload) {
        if (core_->client->is_freed) return Error{PF_CODE_FREED, "the client was freed"};
        return detail::check(pf_room_send_packed(core_->handle, detail::text(message),
                                                 detail::text(payload.written())));
    }

    /// Sends a message in `packed`; the result is the reply, to be read by a `PackedReader`.
    Future<std::vector<std::byte>> request_packed(std::string_view message,
                                                  const PackedWriter &payload) {
        using Bytes = std::vector<std::byte>;
        detail::PackedRequest request{core_->handle, message, payload.written()};
        return core_->client->ask<Bytes>(request, [](const pf_event &event) -> Result<Bytes> {
            auto reply = detail::bytes_of(event);
            return Bytes(reply.begin(), reply.end());
        });
    }

    /// Sends a message in `packed`, and calls a function with the reply, a `Result<PackedReader>`,
    /// in poll(): or at once, if it was not sent. What the reader points to is valid until the
    /// function returns. The cheapest way to ask.
    template <class Call>
    void request_packed(std::string_view message, const PackedWriter &payload, Call call) {
        detail::PackedRequest request{core_->handle, message, payload.written()};
        core_->client->ask_by(request, std::move(call));
    }

    /// Leaves the room; the result comes when the node has confirmed it.
    Future<void> leave() {
        return core_->client->ask<void>(
            [&](std::uint64_t *request) { return pf_room_leave(core_->handle, request); },
            [](const pf_event &) -> Result<void> { return {}; });
    }

    /// Calls a function for each event of a name.
    void on_event(std::string_view name, std::function<void(Value)> call) {
        if (core_) core_->events_by_name[std::string(name)].set(std::move(call));
    }
    /// Calls a function for each event.
    void on_event(std::function<void(const RoomEvent &)> call) {
        if (core_) core_->events.set(std::move(call));
    }
    /// Calls a function for each event of a name with its payload in `packed`, which saves the time
    /// of a `Value`. Then `on_event` of that name is not called. Set in a callback, it is called for
    /// all events after the present one. Removed in a callback, it is still called for those that
    /// were taken with the present one: what it refers to must live until poll() has returned 0.
    Result<void> on_packed(std::string_view name, std::function<void(PackedReader)> call) {
        bool is_set = bool(call);
        auto is_known = detail::check(
            pf_room_set_packed(core_->handle, detail::text(name), is_set));
        if (!is_known) return is_known;
        auto &client = *core_->client;
        std::erase_if(client.unset, [&](const auto &unset) {
            return unset.first.lock().get() == core_.operator->() && unset.second == name;
        });
        // An event taken in packed has no value for on_event.
        if (!is_set && client.next_taken < client.taken_end) {
            client.unset.emplace_back(core_->weak_from_this(), name);
        } else {
            core_->packed_by_name[std::string(name)].set(std::move(call));
        }
        return is_known;
    }
    /// Calls a function when the state is another.
    void on_state(std::function<void()> call) {
        if (core_) core_->state.set(std::move(call));
    }
    /// Calls a function when this client is no longer in the room.
    void on_left(std::function<void(const Error &)> call) {
        if (core_) core_->left.set(std::move(call));
    }
    /// Calls a function when the room has refused a send.
    void on_refused(std::function<void(const Error &)> call) {
        if (core_) core_->refused.set(std::move(call));
    }
    /// Calls a function when events or changes were missed; with their number, 0 if unknown.
    void on_missed(std::function<void(std::uint64_t)> call) {
        if (core_) core_->missed.set(std::move(call));
    }

    /// Calls a function for each change at a place that matches a pattern, such as `players.*.hp`,
    /// after the state has changed. Returns a number for `unwatch`.
    Result<std::uint64_t> on_change(std::string_view pattern,
                                    std::function<void(const Change &)> call) {
        std::uint64_t watch = 0;
        pf_code code = pf_room_watch(core_->handle, detail::text(pattern), &watch);
        if (code != PF_CODE_OK) return detail::last_error(code);
        core_->watches[watch].set(std::move(call));
        return watch;
    }
    Result<void> unwatch(std::uint64_t watch) {
        if (core_) core_->watches.erase(watch);
        return detail::check(pf_room_unwatch(core_->handle, watch));
    }

    /// Why this client is no longer in the room; none while it is.
    const std::optional<Error> &ending() const { return core_->ending; }

    pf_room raw() const { return core_->handle; }

private:
    detail::Ref<detail::RoomCore> core_;
};

/// A subscription to a channel. When the last copy is gone, it ends.
class Channel {
public:
    Channel() = default;
    explicit Channel(std::shared_ptr<detail::ChannelCore> core) : core_(std::move(core)) {}
    explicit operator bool() const { return bool(core_); }

    const std::string &name() const { return core_->name; }

    /// Calls a function for each publication.
    void on_publication(std::function<void(const Publication &)> call) {
        if (core_) core_->publications.set(std::move(call));
    }
    /// Calls a function when the node has answered the subscription, on the first or a later
    /// connection: whether all publications since were recovered, and how many members there are.
    void on_subscribed(std::function<void(bool recovered, std::uint64_t members)> call) {
        if (core_) core_->subscribed.set(std::move(call));
    }
    /// Calls a function when another session joins (`true`) or leaves, by its name.
    void on_presence(std::function<void(std::string_view name, bool joined)> call) {
        if (core_) core_->presence.set(std::move(call));
    }
    /// Calls a function when publications were missed.
    void on_missed(std::function<void(std::uint64_t)> call) {
        if (core_) core_->missed.set(std::move(call));
    }
    /// Calls a function when the node has ended the subscription.
    void on_unsubscribed(std::function<void(const Error &)> call) {
        if (core_) core_->unsubscribed.set(std::move(call));
    }

    /// The last publication that was reported, to subscribe since it later.
    Position position() const {
        Position found;
        (void)pf_channel_position(core_->handle, &found.epoch, &found.offset);
        return found;
    }

    pf_channel raw() const { return core_->handle; }

private:
    detail::Ref<detail::ChannelCore> core_;
};

/// A command to a device. What it refers to is valid until its callback returns; the command may be
/// kept, and answered later.
class Command {
public:
    Command(std::weak_ptr<detail::DeviceCore> device, std::uint64_t number, Value payload,
            std::span<const std::byte> payload_bytes)
        : value(payload), bytes(payload_bytes), device_(std::move(device)), number_(number) {}

    /// The payload, if it is JSON.
    Value value;
    std::span<const std::byte> bytes;

    /// Whether someone waits for the answer.
    bool wants_answer() const { return number_ != 0; }

    /// Answers, once. Does nothing if no answer is wanted, or the session is over.
    Result<void> answer(const Json &payload = {}) {
        return end(detail::text(payload.text()), false);
    }
    Result<void> answer(std::span<const std::byte> payload) {
        return end(detail::text(payload), true);
    }
    /// Refuses the command, with a reason.
    Result<void> refuse(std::string_view why) {
        return call([&](pf_device device) {
            return pf_device_refuse(device, number_, detail::text(why));
        });
    }

private:
    Result<void> end(pf_text payload, bool is_bytes) {
        return call([&](pf_device device) {
            return pf_device_answer(device, number_, payload, is_bytes);
        });
    }
    template <class Call> Result<void> call(Call call) {
        if (number_ == 0) return {};
        auto device = device_.lock();
        if (!device || device->client->is_freed) return Error{PF_CODE_FREED, "the device was freed"};
        return detail::check(call(device->handle));
    }

    std::weak_ptr<detail::DeviceCore> device_;
    std::uint64_t number_;
};

/// A registration as a device. When the last copy is gone, the node refuses requests to the device;
/// the registration ends with the session.
class Device {
public:
    Device() = default;
    explicit Device(std::shared_ptr<detail::DeviceCore> core) : core_(std::move(core)) {}
    explicit operator bool() const { return bool(core_); }

    const std::string &id() const { return core_->id; }
    /// Whether no device was registered under the id before.
    bool is_new() const { return core_->is_new; }
    /// Whether the payloads of the fleet are bytes, and not JSON.
    bool is_bytes() const { return core_->is_bytes; }

    /// Sends a report in JSON; the result is the fleet's reply.
    Future<Document> report(const Json &report) {
        return ask<Document>(detail::text(report.text()), false, detail::document_of);
    }
    /// Sends a report to a fleet whose payloads are bytes; the result is its reply.
    Future<std::vector<std::byte>> report(std::span<const std::byte> report) {
        using Bytes = std::vector<std::byte>;
        return ask<Bytes>(detail::text(report), true, [](const pf_event &event) -> Result<Bytes> {
            auto reply = detail::bytes_of(event);
            return Bytes(reply.begin(), reply.end());
        });
    }
    /// Sends a report without a reply. If it is refused, `Client::on_refused` is called.
    Result<void> report_unconfirmed(const Json &report) {
        return tell(detail::text(report.text()), false);
    }
    Result<void> report_unconfirmed(std::span<const std::byte> report) {
        return tell(detail::text(report), true);
    }

    /// Calls a function for each command. One that wants an answer, and gets none, keeps who asked
    /// waiting until a time limit.
    void on_command(std::function<void(Command)> call) {
        if (core_) core_->commands.set(std::move(call));
    }
    /// Calls a function when commands were dropped, because poll() was not called; they were refused.
    void on_missed(std::function<void(std::uint64_t)> call) {
        if (core_) core_->missed.set(std::move(call));
    }
    /// Calls a function when the registration has ended.
    void on_unregistered(std::function<void()> call) {
        if (core_) core_->unregistered.set(std::move(call));
    }

    pf_device raw() const { return core_->handle; }

private:
    template <class T, class Make>
    Future<T> ask(pf_text report, bool is_bytes, Make make) {
        return core_->client->ask<T>(
            [&](std::uint64_t *request) {
                return pf_device_report(core_->handle, report, is_bytes, request);
            },
            std::move(make));
    }
    Result<void> tell(pf_text report, bool is_bytes) {
        if (core_->client->is_freed) return Error{PF_CODE_FREED, "the client was freed"};
        return detail::check(pf_device_report_unconfirmed(core_->handle, report, is_bytes));
    }

    detail::Ref<detail::DeviceCore> core_;
};

/// A client. Copies refer to the same one; `close()` or the last copy, and of its rooms and
/// channels, ends it.
///
/// A client, with its rooms, channels, values and futures, is for one thread at a time. Only
/// `wake()` is for any. Callbacks and coroutines run in poll(), and may do anything but poll.
class Client {
public:
    Client() = default;
    explicit operator bool() const { return bool(core_); }

    /// Makes a client, which is not connected yet.
    static Result<Client> create(const Options &options) {
        auto core = std::make_shared<detail::Core>();
        pf_code code = pf_client_new(detail::text(options.url), &core->handle);
        auto text = [&](pf_option option, std::string_view value) {
            if (code != PF_CODE_OK || value.empty()) return;
            code = pf_client_set_text(core->handle, option, detail::text(value));
        };
        auto number = [&](pf_option option, std::optional<std::uint64_t> value) {
            if (code != PF_CODE_OK || !value) return;
            code = pf_client_set_number(core->handle, option, *value);
        };
        auto time = [&](pf_option option, std::optional<std::chrono::milliseconds> value) {
            if (value) number(option, std::uint64_t(std::max<std::int64_t>(0, value->count())));
        };
        text(PF_OPTION_NAME, options.name);
        text(PF_OPTION_TOKEN, options.token);
        for (const auto &certificate : options.root_certificates) {
            text(PF_OPTION_ROOT_CERTIFICATE, certificate);
        }
        if (options.deflate) number(PF_OPTION_DEFLATE, 1);
        if (options.token_by) number(PF_OPTION_TOKEN_WANTED, 1);
        time(PF_OPTION_TIMEOUT_MS, options.timeout);
        time(PF_OPTION_RECONNECT_TIMEOUT_MS, options.reconnect_timeout);
        time(PF_OPTION_BACKOFF_FIRST_MS, options.backoff_first);
        time(PF_OPTION_BACKOFF_MOST_MS, options.backoff_most);
        number(PF_OPTION_MESSAGE_BYTES_MAX, options.message_bytes_max);
        number(PF_OPTION_EVENTS_MAX, options.events_max);
        number(PF_OPTION_QUEUE_BYTES_MAX, options.queue_bytes_max);
        time(PF_OPTION_NODE_IDLE_MS, options.node_idle);
        if (code != PF_CODE_OK) return detail::last_error(code);
        using TokenBy = std::function<std::optional<std::string>()>;
        if (options.token_by) core->token_by = std::make_shared<TokenBy>(options.token_by);
        Client client;
        client.core_ = std::move(core);
        return client;
    }

    /// Makes a client, and polls until it is connected.
    static Result<Client> open(const Options &options) {
        auto client = create(options);
        if (!client) return client;
        auto limit = options.timeout.value_or(std::chrono::seconds(10)) + std::chrono::seconds(20);
        auto connected = client->connect().wait(limit);
        if (!connected) return connected.error();
        return client;
    }

    /// Connects; the result comes when the node has welcomed the client, or why it has not.
    Future<void> connect() {
        auto state = std::make_shared<detail::FutureState<void>>();
        state->pump = core_.shared();
        pf_code code = pf_client_connect(core_->handle);
        if (code != PF_CODE_OK) {
            state->complete(detail::last_error(code));
        } else {
            core_->connecting = state;
        }
        return Future<void>(state);
    }

    /// Lets happen what has happened: callbacks are called and coroutines resume, at most 4096 of
    /// them. If there is nothing, waits for at most `wait`. Returns how much happened.
    Result<std::size_t> poll(std::chrono::milliseconds wait = std::chrono::milliseconds(0)) {
        auto core = core_.shared();
        return core->poll(wait, 4096);
    }

    /// Has poll() on another thread return. For any thread.
    void wake() const { (void)pf_client_wake(core_->handle); }

    /// Enters an existing room by its id, a reservation or a ticket.
    Future<Room> join(std::string_view id) {
        return enter([&](std::uint64_t *request) {
            return pf_client_join(core_->handle, detail::text(id), request);
        });
    }
    /// Enters the room of a type that has this key or code.
    Future<Room> join_by_key(std::string_view type, std::string_view key) {
        return enter([&](std::uint64_t *request) {
            return pf_client_join_by_key(core_->handle, detail::text(type), detail::text(key), request);
        });
    }
    /// Enters the room of a type that has this key, or a new one; without a key any that is not full.
    Future<Room> join_or_create(std::string_view type, std::string_view key = {},
                                const std::optional<Json> &options = std::nullopt) {
        std::string_view json = options ? std::string_view(options->text()) : std::string_view();
        return enter([&](std::uint64_t *request) {
            return pf_client_join_or_create(core_->handle, detail::text(type), detail::text(key),
                                            detail::text(json), request);
        });
    }
    /// Creates a room, and enters it.
    Future<Room> create_room(std::string_view type, const Creation &creation = {}) {
        std::string_view json =
            creation.options ? std::string_view(creation.options->text()) : std::string_view();
        std::uint32_t flags = (creation.is_private ? PF_CREATE_PRIVATE : 0) |
                              (creation.code ? PF_CREATE_CODE : 0);
        return enter([&](std::uint64_t *request) {
            return pf_client_create(core_->handle, detail::text(type), flags,
                                    detail::text(creation.key), detail::text(json), request);
        });
    }

    /// Lists rooms of a type, or of all if it is empty: a list of maps with `id`, `room_type`,
    /// `key`, `players`, `capacity`, `locked` and `metadata`.
    Future<Document> list(std::string_view type = {}, const std::optional<Json> &filter = std::nullopt,
                          std::uint32_t limit = 0) {
        std::string_view json = filter ? std::string_view(filter->text()) : std::string_view();
        return ask([&](std::uint64_t *request) {
            return pf_client_list(core_->handle, detail::text(type), detail::text(json), limit, request);
        });
    }
    /// The node's schema of a room type.
    Future<Document> schema(std::string_view type) {
        return ask([&](std::uint64_t *request) {
            return pf_client_schema(core_->handle, detail::text(type), request);
        });
    }
    /// Measures the round trip to the node.
    Future<std::chrono::microseconds> ping() {
        return core_->ask<std::chrono::microseconds>(
            [&](std::uint64_t *request) { return pf_client_ping(core_->handle, request); },
            [](const pf_event &event) -> Result<std::chrono::microseconds> {
                return std::chrono::microseconds(Value(event.value).as<std::int64_t>());
            });
    }

    /// Subscribes to a channel, since a position if one is given.
    Future<Channel> subscribe(std::string_view name, bool presence = false, Position since = {}) {
        auto *core = core_.shared().get();
        return core_->ask<Channel>(
            [&](std::uint64_t *request) {
                return pf_client_subscribe(core_->handle, detail::text(name), presence, since.epoch,
                                           since.offset, request);
            },
            [core, owned = std::string(name)](const pf_event &event) -> Result<Channel> {
                auto channel = core->hold(core->channels, event.channel);
                channel->name = owned;
                return Channel(channel);
            });
    }
    /// Publishes JSON to a channel; the result is the publication's offset.
    Future<std::uint64_t> publish(std::string_view channel, const Json &payload) {
        return publish_raw(channel, detail::text(payload.text()), false);
    }
    /// Publishes bytes to a channel whose payloads are bytes.
    Future<std::uint64_t> publish(std::string_view channel, std::span<const std::byte> payload) {
        return publish_raw(channel, detail::text(payload), true);
    }
    /// Publishes without an answer. If the node refuses it, `on_refused` is called.
    Result<void> publish_unconfirmed(std::string_view channel, const Json &payload) {
        return detail::check(pf_client_publish_unconfirmed(core_->handle, detail::text(channel),
                                                           detail::text(payload.text()), false));
    }
    Result<void> publish_unconfirmed(std::string_view channel, std::span<const std::byte> payload) {
        return detail::check(pf_client_publish_unconfirmed(core_->handle, detail::text(channel),
                                                           detail::text(payload), true));
    }
    /// Who subscribes to a channel: `sequence`, `count` and `members`.
    Future<Document> members(std::string_view channel) {
        return ask([&](std::uint64_t *request) {
            return pf_client_members(core_->handle, detail::text(channel), request);
        });
    }
    /// Publications of a channel: `epoch`, `offset` and `publications`.
    Future<Document> history(std::string_view channel, Position since = {}, std::uint32_t limit = 0) {
        return ask([&](std::uint64_t *request) {
            return pf_client_history(core_->handle, detail::text(channel), since.epoch, since.offset,
                                     limit, request);
        });
    }

    /// Registers this session as a device. In a new session the client registers again by itself.
    /// Another call takes the place of the registration.
    Future<Device> register_device(const Registration &registration) {
        auto metadata = Json::object(), tags = Json::array();
        for (const auto &[name, value] : registration.metadata) metadata.set(name, value);
        for (const auto &tag : registration.tags) tags.push(tag);
        auto *core = core_.shared().get();
        return core->ask<Device>(
            [&](std::uint64_t *request) {
                return pf_client_register(core_->handle, detail::text(registration.id),
                                          detail::text(metadata.text()), detail::text(tags.text()),
                                          request);
            },
            [core](const pf_event &event) -> Result<Device> {
                auto device = core->hold(core->devices, event.device);
                pf_device_info info{};
                pf_code code = pf_device_get_info(event.device, &info);
                if (code != PF_CODE_OK) return detail::last_error(code);
                device->id = detail::view(info.id);
                device->is_new = info.is_new;
                device->is_bytes = info.is_bytes;
                return Device(device);
            });
    }

    /// Calls a function when the connection is lost. The client connects again by itself. If it is
    /// one to another node, to which a join was redirected, the error's message begins with its
    /// address.
    void on_lost(std::function<void(const Error &)> call) {
        if (core_) core_->lost.set(std::move(call));
    }
    /// Calls a function when an attempt to connect again has failed.
    void on_attempt_failed(std::function<void(const Error &)> call) {
        if (core_) core_->attempt_failed.set(std::move(call));
    }
    /// Calls a function when the session continues, with how long it was away.
    void on_resumed(std::function<void(std::chrono::milliseconds)> call) {
        if (core_) core_->resumed.set(std::move(call));
    }
    /// Calls a function when the connection is weak, with `true`: a room with ticks, and all else,
    /// was not heard for about a second. And with `false` when it is so no longer.
    void on_weak(std::function<void(bool)> call) {
        if (core_) core_->weak.set(std::move(call));
    }
    /// Calls a function when the connection is back but the session is not: all rooms there have
    /// ended.
    /// With the number of sends of which it is unknown whether they were carried out.
    void on_new_session(std::function<void(std::uint64_t)> call) {
        if (core_) core_->new_session.set(std::move(call));
    }
    /// Calls a function when the node has refused a publication or a report that is unconfirmed.
    void on_refused(std::function<void(const Error &)> call) {
        if (core_) core_->refused.set(std::move(call));
    }
    /// Calls a function when the connection has ended for good.
    void on_ended(std::function<void(const Error &)> call) {
        if (core_) core_->ended.set(std::move(call));
    }

    /// The connection may be dead: checks it now.
    Result<void> suspect() { return detail::check(pf_client_suspect(core_->handle)); }

    Statistics statistics() const {
        Statistics found{};
        (void)pf_client_statistics(core_->handle, &found);
        return found;
    }

    /// Says goodbye; the result comes when the connection has ended.
    Future<void> close() {
        auto state = std::make_shared<detail::FutureState<void>>();
        state->pump = core_.shared();
        pf_code code = pf_client_close(core_->handle);
        if (code != PF_CODE_OK) {
            state->complete(detail::last_error(code));
        } else if (core_->has_ended) {
            state->complete({});
        } else {
            core_->closing.push_back(state);
        }
        return Future<void>(state);
    }

    /// Frees the client, with its rooms and channels: requests fail, and calls give errors. May be
    /// called in a callback.
    void free() {
        if (core_) core_->free();
    }

    pf_client raw() const { return core_->handle; }

private:
    template <class Call> Future<Document> ask(Call call) {
        return core_->ask<Document>(call, detail::document_of);
    }

    template <class Call> Future<Room> enter(Call call) {
        auto *core = core_.shared().get();
        return core->ask<Room>(call, [core](const pf_event &event) -> Result<Room> {
            auto room = core->hold(core->rooms, event.room);
            pf_room_info info{};
            pf_code code = pf_room_get_info(event.room, &info);
            if (code != PF_CODE_OK) return detail::last_error(code);
            room->player = info.player;
            room->id = detail::view(info.id);
            room->type = detail::view(info.room_type);
            room->key = detail::view(info.key);
            room->node = detail::view(info.node);
            return Room(room);
        });
    }

    Future<std::uint64_t> publish_raw(std::string_view channel, pf_text payload, bool is_bytes) {
        return core_->ask<std::uint64_t>(
            [&](std::uint64_t *request) {
                return pf_client_publish(core_->handle, detail::text(channel), payload, is_bytes,
                                         request);
            },
            [](const pf_event &event) -> Result<std::uint64_t> {
                return Value(event.value).as<std::uint64_t>();
            });
    }

    detail::Ref<detail::Core> core_;
};

namespace detail {

inline Result<std::size_t> Core::poll(std::chrono::milliseconds wait, std::size_t most) {
    if (handle.id == 0) {
        if (is_freed) return Error{PF_CODE_FREED, "the client was freed"};
        return Error{PF_CODE_HANDLE, "there is no client: create() makes one"};
    }
    if (is_polling.exchange(true)) {
        return Error{PF_CODE_USAGE, "poll() was called in a callback of the same client, or while "
                                    "another thread is in it"};
    }
    auto self = shared_from_this();
    struct Polling {
        Core &core;
        bool is_corked = false;
        ~Polling() {
            if (is_corked) (void)pf_client_cork(core.handle, false);
            if (core.is_freed) core.release();
            core.is_polling = false;
        }
    } polling{*this};
    std::size_t happened = 0, uncorked = 0;
    auto left = std::clamp<std::int64_t>(wait.count(), 0, UINT32_MAX);
    while (happened < most && !is_freed) {
        // Events that an exception has left come first.
        if (next_taken == taken_end) {
            if (!taken) taken = std::make_unique_for_overwrite<pf_event[]>(taken_max);
            next_taken = taken_end = 0;
            drop_unset();
            if (is_freed) break;
            pf_code code = pf_client_next_many(handle, happened ? 0 : std::uint32_t(left),
                                               taken.get(), std::min(most - happened, taken_max),
                                               &taken_end);
            if (code != PF_CODE_OK) return last_error(code);
            if (taken_end == 0) {
                // To find no event sends what was held back.
                polling.is_corked = false;
                break;
            }
        }
        // What callbacks send leaves together.
        if (!polling.is_corked || happened - uncorked >= 256) {
            if (polling.is_corked) (void)pf_client_cork(handle, false);
            polling.is_corked = pf_client_cork(handle, true) == PF_CODE_OK;
            uncorked = happened;
        }
        ++happened;
        dispatch(taken[next_taken++]);
    }
    return happened;
}

inline void Core::drop_unset() {
    for (auto &[of, name] : std::exchange(unset, {})) {
        if (auto room = of.lock()) (void)room->packed_by_name.extract(name);
    }
}

inline void Core::dispatch_answer(const pf_event &event) {
    auto found = pending.extract(event.request);
    if (!found.empty()) {
        auto waiting = std::move(found.mapped());
        spare = std::move(found);
        waiting->answer(event);
    } else if (event.kind == PF_EVENT_KIND_JOINED) {
        (void)pf_room_free(event.room);
    } else if (event.kind == PF_EVENT_KIND_SUBSCRIBING) {
        (void)pf_channel_free(event.channel);
    } else if (event.kind == PF_EVENT_KIND_REGISTERED) {
        (void)pf_device_free(event.device);
    }
}

inline void Core::dispatch(const pf_event &event) {
    if (event.kind == PF_EVENT_KIND_REPLY) return dispatch_answer(event);
    auto held = [](auto &cores, std::uint64_t id) {
        auto found = id != 0 ? cores.find(id) : cores.end();
        return found != cores.end() ? found->second.lock() : nullptr;
    };
    auto room = held(rooms, event.room.id);
    auto channel = held(channels, event.channel.id);
    auto device = held(devices, event.device.id);
    switch (event.kind) {
    case PF_EVENT_KIND_CONNECTED:
        if (auto state = std::exchange(connecting, nullptr)) state->complete({});
        break;
    case PF_EVENT_KIND_LOST: lost(error_of(event)); break;
    case PF_EVENT_KIND_ATTEMPT_FAILED: attempt_failed(error_of(event)); break;
    case PF_EVENT_KIND_RESUMED: resumed(std::chrono::milliseconds(event.number)); break;
    case PF_EVENT_KIND_NEW_SESSION: new_session(event.number); break;
    case PF_EVENT_KIND_WEAK: weak(true); break;
    case PF_EVENT_KIND_BACK: weak(false); break;
    case PF_EVENT_KIND_ENDED: {
        auto error = error_of(event);
        has_ended = true;
        AllOf all;
        if (auto state = std::exchange(connecting, nullptr)) {
            all.run([&] { state->complete(error); });
        }
        all.run([&] { ended(error); });
        complete_closing(all);
        all.rethrow();
        break;
    }
    case PF_EVENT_KIND_TOKEN_WANTED: {
        auto by = token_by;
        auto token = by ? (*by)() : std::nullopt;
        // Without a token the attempt ends by its time limit.
        if (token && !is_freed) (void)pf_client_give_token(handle, event.request, text(*token));
        break;
    }
    case PF_EVENT_KIND_JOINED:
    case PF_EVENT_KIND_REPLY:
    case PF_EVENT_KIND_SUBSCRIBING:
    case PF_EVENT_KIND_REGISTERED: dispatch_answer(event); break;
    case PF_EVENT_KIND_STATE:
        if (room) room->state();
        break;
    case PF_EVENT_KIND_CHANGE:
        if (room) {
            auto watch = room->watches.find(event.watch);
            if (watch == room->watches.end()) break;
            auto call = watch->second;
            call(Change{view(event.name), event.change, Value(event.old), Value(event.value),
                        event.number});
        }
        break;
    case PF_EVENT_KIND_EVENT:
        if (room) {
            std::optional<Error> error;
            if (event.code != PF_CODE_OK) error = error_of(event);
            AllOf all;
            auto bytes = bytes_of(event);
            all.run([&] {
                room->events(
                    RoomEvent{view(event.name), Value(event.value), event.number, error, bytes});
            });
            if (event.value.tree != 0) {
                call_named(room->events_by_name, event, all, Value(event.value));
            } else if (event.code == PF_CODE_OK) {
                call_named(room->packed_by_name, event, all, PackedReader(bytes));
            }
            all.rethrow();
        }
        break;
    case PF_EVENT_KIND_MISSED:
        if (room) room->missed(event.number);
        if (channel) channel->missed(event.number);
        if (device) device->missed(event.number);
        break;
    case PF_EVENT_KIND_ERROR:
        if (room) room->refused(error_of(event));
        if (event.room.id == 0) refused(error_of(event));
        break;
    case PF_EVENT_KIND_LEFT:
        if (room) {
            room->ending = error_of(event);
            room->left(*room->ending);
        }
        break;
    case PF_EVENT_KIND_SUBSCRIBED:
        if (channel) channel->subscribed(event.change == PF_CHANGE_KIND_ENTERED, event.number);
        break;
    case PF_EVENT_KIND_PUBLICATION:
        if (channel) {
            channel->publications(
                Publication{event.number, view(event.name), Value(event.value), bytes_of(event)});
        }
        break;
    case PF_EVENT_KIND_MEMBER_JOINED:
    case PF_EVENT_KIND_MEMBER_LEFT:
        if (channel) {
            channel->presence(view(event.name), event.kind == PF_EVENT_KIND_MEMBER_JOINED);
        }
        break;
    case PF_EVENT_KIND_UNSUBSCRIBED:
        if (channel) channel->unsubscribed(error_of(event));
        break;
    case PF_EVENT_KIND_COMMAND:
        if (device) {
            device->commands(Command(device, event.number, Value(event.value), bytes_of(event)));
        }
        break;
    case PF_EVENT_KIND_UNREGISTERED:
        if (device) device->unregistered();
        break;
    case PF_EVENT_KIND_NONE: break;
    }
}

} // namespace detail

/// Stops the library's thread: before the library is unloaded. Does nothing but fail with
/// `PF_CODE_USAGE` while there are clients that have connected and were not freed.
inline Result<void> shut_down() { return detail::check(pf_shut_down()); }

} // namespace playfield
