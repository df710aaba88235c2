// Every function of playfield.h, called with handles, pointers and texts that it must refuse: an
// error code, never a crash. functions.inc is made from the header, so a new function is tested too.

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <tuple>
#include <type_traits>

#include "support.hpp"

using namespace playfield;

namespace {

/// Which pointers to places functions get.
enum class Places { good, null, odd };

/// What functions are called with.
struct Input {
    std::uint64_t client = 0, room = 0, channel = 0, device = 0, tree = 0;
    pf_value value{};
    pf_text text{};
    Places places = Places::good;
};

/// A pointer to a place for the result of a call.
void *place(Places places) {
    alignas(64) static thread_local unsigned char memory[16][1024];
    static thread_local std::size_t next = 0;
    if (places == Places::null) return nullptr;
    unsigned char *found = memory[next++ % 16];
    return places == Places::odd ? found + 1 : found;
}

template <class T> T argument(const Input &input) {
    if constexpr (std::is_same_v<T, pf_client>) return {input.client};
    else if constexpr (std::is_same_v<T, pf_room>) return {input.room};
    else if constexpr (std::is_same_v<T, pf_channel>) return {input.channel};
    else if constexpr (std::is_same_v<T, pf_device>) return {input.device};
    else if constexpr (std::is_same_v<T, pf_tree>) return {input.tree};
    else if constexpr (std::is_same_v<T, pf_value>) return input.value;
    else if constexpr (std::is_same_v<T, pf_text>) return input.text;
    else if constexpr (std::is_pointer_v<T>) return static_cast<T>(place(input.places));
    else return T(1);
}

struct Function {
    std::string name;
    bool has_client, has_room, has_channel, has_device, has_tree, has_value;
    bool has_text, has_place, has_aligned_place;
    /// Whether it returns a code.
    bool can_fail;
    std::function<pf_code(const Input &)> call;

    bool frees() const { return name.ends_with("_free"); }
};

template <class T> constexpr bool is_aligned_place() {
    if constexpr (std::is_pointer_v<T>) return alignof(std::remove_pointer_t<T>) > 1;
    else return false;
}

template <class R, class... A> Function describe(const char *name, R (*function)(A...)) {
    auto has = [](auto type) { return (std::is_same_v<decltype(type), A> || ...); };
    return Function{
        name, has(pf_client{}), has(pf_room{}), has(pf_channel{}), has(pf_device{}), has(pf_tree{}),
        has(pf_value{}), has(pf_text{}), (std::is_pointer_v<A> || ...), (is_aligned_place<A>() || ...),
        std::is_same_v<R, pf_code>,
        [function](const Input &input) -> pf_code {
            // In order, as they share a counter.
            std::tuple<A...> arguments{argument<A>(input)...};
            if constexpr (std::is_same_v<R, pf_code>) return std::apply(function, arguments);
            else return (void)std::apply(function, arguments), PF_CODE_OK;
        }};
}

/// All functions, those that free something last.
std::vector<Function> all_functions() {
    std::vector<Function> all = {
#define FUNCTION(name) describe(#name, &name),
#include "functions.inc"
#undef FUNCTION
    };
    std::erase_if(all, [](const Function &function) { return function.name == "pf_shut_down"; });
    std::stable_partition(all.begin(), all.end(), [](const Function &of) { return !of.frees(); });
    return all;
}

/// Calls those of a kind, all of which are to return a code.
template <class Of> int all_return(pf_code expected, const Input &input, Of of) {
    int called = 0;
    for (const auto &function : all_functions()) {
        if (!function.can_fail || !of(function)) continue;
        pf_code code = function.call(input);
        if (code != expected) {
            std::ostringstream what;
            what << function.name << " returns " << code << ", and not " << expected << ": "
                 << detail::view(pf_error_message());
            test::fail(__FILE__, __LINE__, what.str());
        }
        CHECK(pf_error_message().length > 0);
        ++called;
    }
    return called;
}

bool takes_client(const Function &of) { return of.has_client; }
bool takes_room(const Function &of) { return of.has_room; }
bool takes_channel(const Function &of) { return of.has_channel; }
bool takes_device(const Function &of) { return of.has_device; }
bool takes_tree(const Function &of) { return of.has_tree; }
bool takes_value(const Function &of) { return of.has_value; }

/// A client with one handle of each kind.
struct All {
    explicit All(const test::Node &node) : client(test::open(node.tcp())) {
        static std::atomic<int> made = 0;
        room = VALUE(client.create_room("hello").wait());
        channel = VALUE(client.subscribe("chat:x").wait());
        auto name = "meter-" + std::to_string(++made);
        device = VALUE(client.register_device(Registration(name)).wait());
        document = VALUE(Document::parse("{\"a\": 1}"));
    }

    Input input() const {
        return {client.raw().id, room.raw().id, channel.raw().id, device.raw().id,
                document.raw().tree, room.state().raw(), {}, Places::good};
    }

    Client client;
    Room room;
    Channel channel;
    Device device;
    Document document;
};

void the_list_is_whole() {
    auto all = all_functions();
    CHECK(all.size() > 50);
    for (const auto &function : all) {
        bool returns_a_value = function.name == "pf_error_message" ||
                               function.name == "pf_value_kind" || function.name == "pf_value_size";
        CHECK_EQUAL(function.can_fail, !returns_a_value);
    }
}

void foreign_handles(const test::Node &node) {
    All own(node);
    Input good = own.input();
    // 0, those that were never given out, and one of each kind for all others.
    std::vector<std::uint64_t> ids = {0,
                                      1,
                                      UINT64_MAX,
                                      good.client + (std::uint64_t(7) << 24),
                                      good.client | 0xffffff,
                                      good.client,
                                      good.room,
                                      good.channel,
                                      good.device,
                                      good.tree};
    for (std::uint64_t id : ids) {
        Input input{id, id, id, id, id, {}, {}, Places::good};
        if (id != good.client) CHECK(all_return(PF_CODE_HANDLE, input, takes_client) > 20);
        if (id != good.room) CHECK(all_return(PF_CODE_HANDLE, input, takes_room) >= 8);
        if (id != good.channel) CHECK(all_return(PF_CODE_HANDLE, input, takes_channel) >= 2);
        if (id != good.device) CHECK(all_return(PF_CODE_HANDLE, input, takes_device) >= 6);
        if (id != good.tree) CHECK(all_return(PF_CODE_HANDLE, input, takes_tree) >= 1);
    }
    // The tree of a state is the room's.
    Input state = good;
    state.tree = good.value.tree;
    CHECK(all_return(PF_CODE_HANDLE, state, takes_tree) >= 1);
    CHECK(own.room.state());

    CHECK(all_return(PF_CODE_NOT_FOUND, {}, takes_value) > 10);
    auto whole = own.document.raw(), part = own.document["a"].raw();
    for (pf_value forged : {pf_value{whole.tree, part.node, whole.check},
                            pf_value{good.value.tree, whole.node, whole.check},
                            pf_value{whole.tree, 8, 0},
                            pf_value{good.client, whole.node, whole.check}}) {
        Input input;
        input.value = forged;
        all_return(PF_CODE_HANDLE, input, takes_value);
        CHECK_EQUAL(pf_value_kind(forged), PF_KIND_NONE);
        CHECK_EQUAL(pf_value_size(forged), 0u);
    }
    CHECK(own.room.request("Add", 1).wait());
}

void freed_handles(const test::Node &node) {
    Input gone;
    {
        All own(node);
        gone = own.input();
        own.client.free();
    }
    for (int again = 0; again < 2; ++again) {
        all_return(PF_CODE_FREED, gone, takes_client);
        all_return(PF_CODE_FREED, gone, takes_room);
        all_return(PF_CODE_FREED, gone, takes_channel);
        all_return(PF_CODE_FREED, gone, takes_device);
        all_return(PF_CODE_STALE, gone, takes_value);
        // The places in the table have others now.
        All others(node);
        CHECK(others.client.raw().id != gone.client);
        all_return(PF_CODE_FREED, gone, takes_client);
        all_return(PF_CODE_FREED, gone, takes_room);
    }
}

void null_and_misaligned_pointers(const test::Node &node) {
    All own(node);
    // With a handle and without: the pointers are looked at first.
    for (Input input : {own.input(), Input{}}) {
        input.places = Places::null;
        all_return(PF_CODE_NULL, input, [](const Function &of) { return of.has_place; });
        input.places = Places::odd;
        all_return(PF_CODE_ARGUMENT, input, [](const Function &of) { return of.has_aligned_place; });
        input.places = Places::good;
        input.text = {nullptr, 5};
        all_return(PF_CODE_NULL, input, [](const Function &of) { return of.has_text; });
        input.text = {reinterpret_cast<const std::uint8_t *>("x"), SIZE_MAX};
        all_return(PF_CODE_ARGUMENT, input, [](const Function &of) { return of.has_text; });
    }
    CHECK(own.room.request("Add", 1).wait());
}

/// Calls all but those that free: whatever they return, they return.
void call_all(const Input &input, bool polls = true) {
    for (const auto &function : all_functions()) {
        if (function.frees()) continue;
        // It ends what the event of another thread points to.
        if (!polls && function.name == std::string_view("pf_client_next")) continue;
        CHECK(function.call(input) != PF_CODE_PANIC);
    }
}

void calls_after_close(const test::Node &node) {
    All own(node);
    VALUE(own.client.close().wait());
    std::vector<std::string> texts = {"", "x", "{}", "[]", "1", "{\"a\": \"b\"}", "players.*", "\xff"};
    for (const auto &text : texts) {
        Input input = own.input();
        input.text = detail::text(text);
        call_all(input);
    }
    CHECK_EQUAL(own.client.join("x").wait().error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(own.client.subscribe("chat:y").wait().error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(own.client.ping().wait().error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(own.device.report(1).wait().error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(pf_device_report_unconfirmed(own.device.raw(), pf_str("1"), false), PF_CODE_CLOSED);
    CHECK_EQUAL(pf_room_send(own.room.raw(), pf_str("Say"), pf_str("{\"text\": \"x\"}")), PF_CODE_CLOSED);
}

void calls_from_other_threads(const test::Node &node) {
    for (int i = 0; i < 3; ++i) {
        All own(node);
        Input input = own.input();
        std::atomic<bool> is_over = false;
        std::vector<std::thread> threads;
        for (int j = 0; j < 3; ++j) {
            threads.emplace_back([&, input, j]() mutable {
                std::string text = j == 0 ? "{}" : j == 1 ? "Add" : "";
                input.text = detail::text(text);
                while (!is_over) call_all(input, false);
            });
        }
        for (int j = 0; j < 20; ++j) {
            // Another thread may have closed the client.
            (void)own.client.poll(std::chrono::milliseconds(1));
        }
        own.client.free();
        is_over = true;
        for (auto &thread : threads) thread.join();
    }
}

} // namespace

int main() {
    test::Node node;
    the_list_is_whole();
    foreign_handles(node);
    freed_handles(node);
    null_and_misaligned_pointers(node);
    calls_after_close(node);
    calls_from_other_threads(node);
    VALUE(shut_down());
}
