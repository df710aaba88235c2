// In which order the C ABI reports what happens: handles before what is reported of them, nothing of
// those that were freed, each request answered once, and the end last. A stress of random calls, then
// calls whose answers come before they return.

#include <map>
#include <random>
#include <set>

#ifdef __linux__
#include <sched.h>
#endif

#include "support.hpp"

namespace {

/// What a client has reported, and what must follow.
class Model {
public:
    Model(const std::string &url, const char *name) {
        CHECK_EQUAL(pf_client_new(pf_str(url.c_str()), &client), PF_CODE_OK);
        CHECK_EQUAL(pf_client_set_text(client, PF_OPTION_NAME, pf_str(name)), PF_CODE_OK);
        CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_NODE_IDLE_MS, 1), PF_CODE_OK);
        CHECK_EQUAL(pf_client_connect(client), PF_CODE_OK);
        while (!is_connected) (void)next(60'000);
    }
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;
    ~Model() { CHECK_EQUAL(pf_client_free(client), PF_CODE_OK); }

    /// Notes a request that was made, whose number the call has stored.
    void asked(pf_code code, const std::uint64_t &request, pf_event_kind answer) {
        // The connection may have ended.
        if (code != PF_CODE_OK) return;
        CHECK(!has_ended);
        CHECK(requests.emplace(request, answer).second);
    }

    /// Takes the next event, and checks that it may come now. Returns whether there was one.
    bool next(std::uint32_t wait) {
        pf_event event{};
        CHECK_EQUAL(pf_client_next(client, wait, &event), PF_CODE_OK);
        if (event.kind == PF_EVENT_KIND_NONE) return false;
        CHECK(!has_ended);
        switch (event.kind) {
        case PF_EVENT_KIND_CONNECTED: is_connected = true; break;
        case PF_EVENT_KIND_ENDED:
            has_ended = true;
            CHECK_EQUAL(requests.size(), 0u);
            // Each room has said that it is left, each device that it is not registered.
            for (auto &[room, last] : rooms) CHECK(last == over);
            for (auto &[device, last] : devices) CHECK(last == over);
            break;
        case PF_EVENT_KIND_JOINED: answered(event, event.room.id, rooms); break;
        case PF_EVENT_KIND_SUBSCRIBING: answered(event, event.channel.id, channels); break;
        case PF_EVENT_KIND_REGISTERED: answered(event, event.device.id, devices); break;
        case PF_EVENT_KIND_REPLY:
            take(event);
            if (are_replies_in_order) CHECK(event.request > std::exchange(last_reply, event.request));
            break;
        case PF_EVENT_KIND_EVENT: follows(rooms, event.room.id, event.number); break;
        case PF_EVENT_KIND_STATE: follows(rooms, event.room.id, 0); break;
        case PF_EVENT_KIND_CHANGE:
            follows(rooms, event.room.id, 0);
            CHECK(watches.contains(event.watch));
            break;
        case PF_EVENT_KIND_LEFT: ends(rooms, event.room.id); break;
        case PF_EVENT_KIND_SUBSCRIBED: follows(channels, event.channel.id, 0); break;
        case PF_EVENT_KIND_PUBLICATION: follows(channels, event.channel.id, event.number); break;
        case PF_EVENT_KIND_MEMBER_JOINED:
        case PF_EVENT_KIND_MEMBER_LEFT: follows(channels, event.channel.id, 0); break;
        case PF_EVENT_KIND_UNSUBSCRIBED: ends(channels, event.channel.id); break;
        case PF_EVENT_KIND_COMMAND: follows(devices, event.device.id, 0); break;
        case PF_EVENT_KIND_UNREGISTERED: ends(devices, event.device.id); break;
        case PF_EVENT_KIND_MISSED:
        case PF_EVENT_KIND_ERROR:
            if (event.room.id != 0) follows(rooms, event.room.id, 0);
            if (event.channel.id != 0) follows(channels, event.channel.id, 0);
            if (event.device.id != 0) follows(devices, event.device.id, 0);
            break;
        default: test::fail(__FILE__, __LINE__, "it was not expected");
        }
        return true;
    }

    /// Takes events until it has ended.
    void take_all() {
        while (!has_ended) CHECK(next(60'000));
        CHECK(!next(0));
    }

    /// Of a handle that the program holds: the number of its last event, or that it is over.
    using Handles = std::map<std::uint64_t, std::uint64_t>;
    static constexpr std::uint64_t over = UINT64_MAX;

    pf_client client{};
    Handles rooms, channels, devices;
    std::set<std::uint64_t> watches;
    std::map<std::uint64_t, pf_event_kind> requests;
    bool is_connected = false, has_ended = false, are_replies_in_order = false;

private:
    std::uint64_t last_reply = 0;

    void take(const pf_event &event) {
        auto found = requests.find(event.request);
        CHECK(found != requests.end());
        CHECK_EQUAL(found->second, event.kind);
        requests.erase(found);
    }
    void answered(const pf_event &event, std::uint64_t id, Handles &handles) {
        take(event);
        CHECK_EQUAL(event.code == PF_CODE_OK, id != 0);
        if (id != 0) CHECK(handles.emplace(id, 0).second);
    }
    /// Something of a handle that counts from 1, or 0.
    static void follows(Handles &handles, std::uint64_t id, std::uint64_t number) {
        auto found = handles.find(id);
        CHECK(found != handles.end());
        CHECK(found->second != over);
        if (number == 0) return;
        CHECK(number > found->second);
        found->second = number;
    }
    static void ends(Handles &handles, std::uint64_t id) {
        follows(handles, id, 0);
        handles[id] = over;
    }
};

pf_text text(const std::string &of) { return playfield::detail::text(of); }

/// Random calls of two clients, until one is closed and the other is freed.
void random_calls(const test::Node &node, std::uint32_t seed) {
    std::mt19937 random(seed);
    auto below = [&](unsigned end) { return unsigned(random() % end); };
    // Rooms of the first are at another node by turns, whose connection soon closes.
    Model models[2] = {Model(seed % 3 == 0 ? node.redirecting() : node.tcp(), "Ann"),
                       Model(node.ws(), "Bob")};
    const std::string names[] = {"chat:x", "chat:y"};
    auto some = [&](const Model::Handles &handles) -> std::uint64_t {
        if (handles.empty()) return 0;
        auto found = handles.begin();
        std::advance(found, below(unsigned(handles.size())));
        return found->first;
    };
    for (int step = 0; step < 300; ++step) {
        Model &model = models[below(2)];
        pf_client client = model.client;
        std::uint64_t request = 0;
        pf_room room{some(model.rooms)};
        switch (below(16)) {
        case 0:
            model.asked(pf_client_join_or_create(client, pf_str("hello"), pf_str("k"), {}, &request),
                        request, PF_EVENT_KIND_JOINED);
            break;
        case 1:
            model.asked(pf_client_join(client, pf_str("none"), &request), request,
                        PF_EVENT_KIND_JOINED);
            break;
        case 2:
            model.asked(pf_client_subscribe(client, text(names[below(2)]), below(2), 0, 0, &request),
                        request, PF_EVENT_KIND_SUBSCRIBING);
            break;
        case 3: {
            auto id = "order-" + std::to_string(seed) + (&model == &models[0] ? "a" : "b");
            model.asked(pf_client_register(client, text(id), {}, {}, &request), request,
                        PF_EVENT_KIND_REGISTERED);
            break;
        }
        case 4: case 5:
            model.asked(pf_client_publish(client, text(names[below(2)]), pf_str("1"), false, &request),
                        request, PF_EVENT_KIND_REPLY);
            break;
        case 6: case 7: (void)pf_room_send(room, pf_str("Say"), pf_str("{\"text\": \"x\"}")); break;
        case 8:
            model.asked(pf_room_request(room, pf_str("Add"), pf_str("1"), &request), request,
                        PF_EVENT_KIND_REPLY);
            break;
        case 9:
            if (pf_room_watch(room, pf_str("log.*"), &request) == PF_CODE_OK) {
                model.watches.insert(request);
            }
            break;
        case 10:
            if (!model.watches.empty() && below(2)) {
                auto watch = *model.watches.begin();
                if (pf_room_unwatch(room, watch) == PF_CODE_OK) model.watches.erase(watch);
            } else {
                model.asked(pf_room_leave(room, &request), request, PF_EVENT_KIND_REPLY);
            }
            break;
        case 11:
            if (model.rooms.erase(room.id) > 0) CHECK_EQUAL(pf_room_free(room), PF_CODE_OK);
            break;
        case 12: {
            pf_channel channel{some(model.channels)};
            if (model.channels.erase(channel.id) > 0) {
                CHECK_EQUAL(pf_channel_free(channel), PF_CODE_OK);
            }
            break;
        }
        case 13: {
            pf_device device{some(model.devices)};
            if (below(2)) {
                model.asked(pf_device_report(device, pf_str("\"push\""), false, &request), request,
                            PF_EVENT_KIND_REPLY);
            } else if (model.devices.erase(device.id) > 0) {
                CHECK_EQUAL(pf_device_free(device), PF_CODE_OK);
            }
            break;
        }
        default:
            // Not all that is there: the rest waits while others are called.
            for (unsigned i = below(20); i > 0 && model.next(below(2)); --i) {}
        }
    }
    CHECK_EQUAL(pf_client_close(models[0].client), PF_CODE_OK);
    // It may be closed twice, and what is asked now fails.
    std::uint64_t request = 0;
    if (below(2)) CHECK_EQUAL(pf_client_close(models[0].client), PF_CODE_OK);
    models[0].asked(pf_client_ping(models[0].client, &request), request, PF_EVENT_KIND_REPLY);
    models[0].take_all();
}

/// Whether this thread runs only while no other of the process and of the node can: a call that wakes
/// them returns after everything that it causes.
bool yields_to_all_others() {
#ifdef __linux__
    sched_param none{};
    return sched_setscheduler(0, SCHED_IDLE, &none) == 0;
#else
    return false;
#endif
}

/// All on one core, so that there is an order.
void share_a_core() {
#ifdef __linux__
    cpu_set_t may{}, one{};
    if (sched_getaffinity(0, sizeof may, &may) != 0) return;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &may)) continue;
        CPU_SET(core, &one);
        break;
    }
    (void)sched_setaffinity(0, sizeof one, &one);
#endif
}

void answers_that_come_at_once(const test::Node &node) {
    constexpr int requests = 48;
    Model model(node.tcp(), "Ann");
    // The library's thread, which has begun, does not.
    (void)yields_to_all_others();
    pf_client client = model.client;
    for (int round = 0; round < 2; ++round) {
        std::uint64_t request = 0;
        model.asked(pf_client_subscribe(client, pf_str("chat:z"), true, 0, 0, &request), request,
                    PF_EVENT_KIND_SUBSCRIBING);
        model.asked(pf_client_join_or_create(client, pf_str("hello"), {}, {}, &request), request,
                    PF_EVENT_KIND_JOINED);
        model.asked(pf_client_register(client, pf_str("z"), {}, {}, &request), request,
                    PF_EVENT_KIND_REGISTERED);
        while (!model.requests.empty()) CHECK(model.next(60'000));
        auto room = model.rooms.begin()->first;
        CHECK_EQUAL(pf_room_send({room}, pf_str("Say"), pf_str("{\"text\": \"x\"}")), PF_CODE_OK);
        model.asked(pf_client_publish(client, pf_str("chat:z"), pf_str("1"), false, &request),
                    request, PF_EVENT_KIND_REPLY);
        model.asked(pf_device_report({model.devices.begin()->first}, pf_str("\"push\""), false,
                                     &request),
                    request, PF_EVENT_KIND_REPLY);
        (void)model.next(0);
        for (auto &[id, last] : std::exchange(model.rooms, {})) (void)pf_room_free({id});
        for (auto &[id, last] : std::exchange(model.channels, {})) (void)pf_channel_free({id});
        for (auto &[id, last] : std::exchange(model.devices, {})) (void)pf_device_free({id});
        while (!model.requests.empty()) CHECK(model.next(60'000));
    }
    // They are sent together, and answered while they are polled.
    std::uint64_t request = 0;
    model.asked(pf_client_join_or_create(client, pf_str("hello"), {}, {}, &request), request,
                PF_EVENT_KIND_JOINED);
    while (!model.requests.empty()) CHECK(model.next(60'000));
    pf_room room{model.rooms.begin()->first};
    model.are_replies_in_order = true;
    CHECK_EQUAL(pf_client_cork(client, true), PF_CODE_OK);
    for (int i = 0; i < requests; ++i) {
        model.asked(pf_room_request(room, pf_str("Add"), pf_str("1"), &request), request,
                    PF_EVENT_KIND_REPLY);
    }
    while (!model.requests.empty()) CHECK(model.next(60'000));
    CHECK_EQUAL(pf_client_close(client), PF_CODE_OK);
    model.take_all();
}

} // namespace

int main(int count, char **arguments) {
    std::uint32_t rounds = count > 1 ? std::uint32_t(std::atoi(arguments[1])) : 20;
    {
        test::Node node;
        for (std::uint32_t seed = 1; seed <= rounds; ++seed) random_calls(node, seed);
        CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    }
    share_a_core();
    test::Node node;
    answers_that_come_at_once(node);
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
}
