// Echoes through rooms, closed loop: each client keeps a window of messages on their way.
//
//     cargo run --release -p playfield-ffi --example node -- 127.0.0.1:7350   # in another terminal
//     target/cpp/release/examples/echo_driver tcp://127.0.0.1:7350 100 200 8 send 5
//
// These are the messages of class B of `playfield-bench echo`, by this client: a send is answered by
// an event, a request by a reply. Each message has its number, and every byte of what comes back is
// compared. It prints a line of JSON, and ends with 1 if anything came back wrong or not at all.

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <playfield.hpp>

using namespace playfield;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto warm_up = std::chrono::milliseconds(300);
constexpr auto patience = std::chrono::seconds(30);

struct Settings {
    std::string url;
    std::size_t connections = 0;
    std::size_t window = 0;
    std::size_t payload = 0;
    /// Messages and events instead of requests and replies.
    bool sends = false;
    double seconds = 0;
};

/// Counts times in classes that are at most 1.6 % wide.
class Histogram {
public:
    void note(std::chrono::nanoseconds time) {
        ++counts_[place(std::uint64_t(std::max<std::int64_t>(time.count(), 0)))];
        ++total_;
    }
    void clear() { *this = {}; }

    /// The time in microseconds that this part of all did not exceed.
    double us_at(double part) const {
        auto rank = std::uint64_t(part * double(total_));
        std::uint64_t before = 0;
        for (std::size_t at = 0; at < counts_.size(); ++at) {
            before += counts_[at];
            if (before > rank || (before == total_ && total_ > 0)) return double(time(at)) / 1000;
        }
        return 0;
    }

private:
    static constexpr unsigned bits = 6;

    static std::size_t place(std::uint64_t ns) {
        if (ns < (1u << bits)) return std::size_t(ns);
        auto shift = unsigned(std::bit_width(ns)) - 1 - bits;
        return (std::size_t(shift + 1) << bits) + std::size_t((ns >> shift) - (1u << bits));
    }
    static std::uint64_t time(std::size_t place) {
        if (place < (1u << bits)) return place;
        auto shift = (place >> bits) - 1;
        return (((std::uint64_t(place) & ((1u << bits) - 1)) + (1u << bits)) + 1) << shift;
    }

    std::array<std::uint64_t, (64 - bits + 1) << bits> counts_{};
    std::uint64_t total_ = 0;
};

/// What all clients did.
struct Tally {
    std::uint64_t sent = 0;
    std::uint64_t compared = 0;
    bool is_over = false;
    std::string fault;
    Histogram times;

    void fail(std::string what) {
        if (fault.empty()) fault = std::move(what);
        is_over = true;
    }
};

/// One client's messages.
class Echoes {
public:
    Echoes(const Settings &settings, Tally &tally, Room room)
        : settings_(settings), tally_(tally), room_(std::move(room)), sent_at_(settings.window) {}

    void start() {
        auto known = room_.on_packed("Said", [this](PackedReader said) { arrived(std::move(said)); });
        if (!known) return tally_.fail(known.error().message);
        room_.on_refused([this](const Error &error) { tally_.fail(error.message); });
        for (std::size_t i = 0; i < settings_.window; ++i) say();
    }

private:
    /// Says the next message.
    void say() {
        auto number = sent_++;
        ++tally_.sent;
        sent_at_[number % settings_.window] = Clock::now();
        fill(number, data_);
        message_.clear().bytes(data_);
        if (settings_.sends) {
            auto sent = room_.send_packed("Say", message_);
            if (!sent) tally_.fail(sent.error().message);
            return;
        }
        room_.request_packed("Ask", message_, [this](Result<PackedReader> reply) {
            if (reply) arrived(std::move(*reply));
            else if (!tally_.is_over) tally_.fail(reply.error().message);
        });
    }

    /// Compares what has come back, which is in order, and says another.
    void arrived(PackedReader &&reader) {
        auto number = answered_++;
        fill(number, data_);
        auto bytes = reader.bytes();
        if (auto is = reader.finish(); !is) return tally_.fail(is.error().message);
        if (bytes.size() != data_.size() ||
            std::memcmp(bytes.data(), data_.data(), data_.size()) != 0) {
            return tally_.fail("message " + std::to_string(number) + " came back as another");
        }
        ++tally_.compared;
        tally_.times.note(Clock::now() - sent_at_[number % settings_.window]);
        if (!tally_.is_over) say();
    }

    /// The data of a message: its number, again and again.
    void fill(std::uint64_t number, std::vector<std::byte> &data) const {
        data.resize(settings_.payload);
        for (std::size_t at = 0; at < data.size(); at += sizeof number) {
            std::memcpy(data.data() + at, &number, std::min(sizeof number, data.size() - at));
        }
    }

    const Settings &settings_;
    Tally &tally_;
    Room room_;
    std::uint64_t sent_ = 0, answered_ = 0;
    /// When each message on its way was sent.
    std::vector<Clock::time_point> sent_at_;
    std::vector<std::byte> data_;
    PackedWriter message_;
};

/// Polls all clients until this is so.
template <class So> void poll_until(std::vector<Client> &clients, So so) {
    if (clients.size() == 1) {
        while (!so()) (void)clients[0].poll(std::chrono::seconds(1));
        return;
    }
    for (std::size_t turn = 0; !so(); ++turn) {
        std::size_t happened = 0;
        for (auto &client : clients) happened += client.poll().value_or(0);
        // All have messages on their way, so it makes no difference which of them is waited for.
        if (happened == 0) {
            (void)clients[turn % clients.size()].poll(std::chrono::milliseconds(1));
        }
    }
}

int fail(const std::string &why) {
    std::cerr << "echo_driver: " << why << std::endl;
    return 1;
}

int run(const Settings &settings) {
    std::vector<Client> clients;
    std::vector<Future<void>> connecting;
    for (std::size_t i = 0; i < settings.connections; ++i) {
        Options options;
        options.url = settings.url;
        options.name = "echo " + std::to_string(i);
        options.timeout = patience;
        auto client = Client::create(options);
        if (!client) return fail(client.error().message);
        clients.push_back(*client);
        connecting.push_back(client->connect());
    }
    for (auto &connected : connecting) {
        if (auto is = std::move(connected).wait(patience); !is) return fail(is.error().message);
    }
    std::vector<Future<Room>> joining;
    for (auto &client : clients) joining.push_back(client.join_or_create("hall"));
    Tally tally;
    std::vector<Echoes> all;
    for (auto &joined : joining) {
        auto room = std::move(joined).wait(patience);
        if (!room) return fail(room.error().message);
        all.emplace_back(settings, tally, *room);
    }

    auto until = [&](Clock::time_point end) {
        poll_until(clients, [&] { return tally.is_over || Clock::now() >= end; });
    };
    for (auto &echoes : all) echoes.start();
    until(Clock::now() + warm_up);
    tally.times.clear();
    auto before = tally.compared;
    auto cpu = std::clock();
    auto begin = Clock::now();
    until(begin + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(settings.seconds)));
    std::chrono::duration<double> took = Clock::now() - begin;
    double cpu_s = double(std::clock() - cpu) / CLOCKS_PER_SEC;
    auto messages = tally.compared - before;
    auto times = tally.times;

    // Nothing may be lost.
    tally.is_over = true;
    auto end = Clock::now() + patience;
    poll_until(clients, [&] {
        return tally.compared == tally.sent || !tally.fault.empty() || Clock::now() > end;
    });
    if (tally.fault.empty() && tally.compared < tally.sent) {
        tally.fault = std::to_string(tally.sent - tally.compared) + " messages did not come back";
    }
    for (auto &client : clients) client.free();
    if (!tally.fault.empty()) return fail(tally.fault);
    if (messages == 0) return fail("nothing came back in the time given");
    std::cout << Json::object({{"messages", messages},
                               {"seconds", took.count()},
                               {"compared", messages},
                               {"cpu_ns_per_message", cpu_s * 1e9 / double(messages)},
                               {"rtt_us_p50", times.us_at(0.5)},
                               {"rtt_us_p99", times.us_at(0.99)},
                               {"rtt_us_p999", times.us_at(0.999)}})
                     .text()
              << std::endl;
    return 0;
}

} // namespace

int main(int count, char **arguments) {
    auto number = [&](int at) { return at < count ? std::strtod(arguments[at], nullptr) : 0; };
    std::string_view mode = count > 5 ? arguments[5] : "";
    if (count != 7 || !(number(2) >= 1 && number(3) >= 1 && number(4) >= 1 && number(6) > 0) ||
        (mode != "send" && mode != "request")) {
        std::cerr << "echo_driver URL CONNECTIONS WINDOW PAYLOAD send|request SECONDS" << std::endl;
        return 2;
    }
    Settings settings{arguments[1],
                      std::size_t(number(2)),
                      std::size_t(number(3)),
                      std::size_t(number(4)),
                      mode == "send",
                      number(6)};
    return run(settings);
}
