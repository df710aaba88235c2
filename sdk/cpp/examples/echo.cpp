// Echoes through a room, closed loop: each client keeps a window of messages on their way.
//
//     cargo run --release -p playfield-ffi --example node -- 127.0.0.1:7350   # in another terminal
//     target/cpp/release/examples/echo tcp://127.0.0.1:7350 --connections 100 --window 10
//
// It measures this client, not the node: messages are JSON here, and one thread serves the sockets.
// Each message carries its number, and what comes back is compared with what was sent.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <playfield.hpp>

using namespace playfield;
using Clock = std::chrono::steady_clock;

namespace {

struct Settings {
    std::string url = "tcp://127.0.0.1:7350";
    std::size_t connections = 100;
    std::size_t window = 10;
    std::size_t payload = 64;
    std::chrono::milliseconds warm_up{1000};
    std::chrono::milliseconds measured{5000};
    /// Messages and events instead of requests and replies.
    bool send = false;
};

struct Counts {
    std::uint64_t done = 0;
    std::uint64_t wrong = 0;
    std::uint64_t failed = 0;
    bool measuring = false;
    bool over = false;
    std::vector<double> microseconds;
};

std::vector<std::byte> payload(std::uint64_t number, std::size_t size) {
    std::vector<std::byte> bytes(std::max(size, sizeof number));
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

struct Driver {
    const Settings &settings;
    Counts &counts;
    Room room;
    std::uint64_t next = 0;
    /// When each message on its way was sent; they come back in order.
    std::vector<Clock::time_point> sent{};

    void come_back(std::uint64_t number, const Result<std::vector<std::byte>> &bytes) {
        if (!bytes || *bytes != payload(number, settings.payload)) ++counts.wrong;
        auto at = sent[number % settings.window];
        if (counts.measuring) {
            ++counts.done;
            std::chrono::duration<double, std::micro> took = Clock::now() - at;
            counts.microseconds.push_back(took.count());
        }
    }

    void one() {
        std::uint64_t number = next++;
        sent[number % settings.window] = Clock::now();
        auto data = Json::object({{"data", Json::bytes(payload(number, settings.payload))}});
        if (settings.send) {
            if (!room.send("Bounce", data)) ++counts.failed;
            return;
        }
        room.request("Echo", data).then([this, number](Result<Document> reply) {
            if (!reply) {
                ++counts.failed;
                return;
            }
            come_back(number, reply->bytes());
            if (!counts.over) one();
        });
    }

    void start() {
        sent.resize(settings.window);
        if (settings.send) {
            room.on_event("Bounced", [this, back = std::uint64_t(0)](Value value) mutable {
                come_back(back++, value["data"].bytes());
                if (!counts.over) one();
            });
        }
        for (std::size_t i = 0; i < settings.window; ++i) one();
    }
};

int run(const Settings &settings) {
    Counts counts;
    std::vector<Client> clients;
    std::vector<Driver> drivers;
    drivers.reserve(settings.connections);
    for (std::size_t i = 0; i < settings.connections; ++i) {
        Options options;
        options.url = settings.url;
        options.name = "echo " + std::to_string(i);
        auto client = Client::open(options);
        if (!client) {
            std::cerr << client.error().message << std::endl;
            return 1;
        }
        // Each in its own room.
        Creation creation;
        creation.is_private = true;
        auto room = client->create_room("hello", creation).wait();
        if (!room) {
            std::cerr << room.error().message << std::endl;
            return 1;
        }
        clients.push_back(*client);
        drivers.push_back(Driver{settings, counts, *room});
    }
    for (auto &driver : drivers) driver.start();
    auto poll_for = [&](std::chrono::milliseconds time) {
        auto until = Clock::now() + time;
        while (Clock::now() < until) {
            std::size_t happened = 0;
            for (auto &client : clients) happened += client.poll().value_or(0);
            if (happened == 0) (void)clients[0].poll(std::chrono::milliseconds(1));
        }
    };
    poll_for(settings.warm_up);
    counts.measuring = true;
    auto begin = Clock::now();
    poll_for(settings.measured);
    std::chrono::duration<double> took = Clock::now() - begin;
    counts.measuring = false;
    counts.over = true;

    auto &times = counts.microseconds;
    std::sort(times.begin(), times.end());
    auto at = [&](double part) {
        return times.empty() ? 0 : times[std::size_t(part * double(times.size() - 1))];
    };
    auto whole = [](double number) { return std::uint64_t(number); };
    auto text = Json::object({{"client", "cpp"},
                              {"mode", settings.send ? "send" : "request"},
                              {"connections", settings.connections},
                              {"window", settings.window},
                              {"payload_bytes", settings.payload},
                              {"messages_per_s", whole(double(counts.done) / took.count())},
                              {"rtt_us_p50", whole(at(0.5))},
                              {"rtt_us_p99", whole(at(0.99))},
                              {"rtt_us_p999", whole(at(0.999))},
                              {"failed", counts.failed},
                              {"verified", counts.wrong == 0 && counts.failed == 0}});
    std::cout << text.text() << std::endl;
    bool passed = counts.wrong == 0 && counts.failed == 0 && counts.done > 0;
    // What still waits for its answer fails by this.
    for (auto &client : clients) client.free();
    return passed ? 0 : 1;
}

} // namespace

int main(int count, char **arguments) {
    Settings settings;
    for (int i = 1; i < count; ++i) {
        std::string_view name = arguments[i];
        if (!name.starts_with("--")) {
            settings.url = name;
            continue;
        }
        if (name == "--send") {
            settings.send = true;
            continue;
        }
        long value = i + 1 < count ? std::atol(arguments[++i]) : 0;
        if (name == "--connections" && value > 0) settings.connections = std::size_t(value);
        else if (name == "--window" && value > 0) settings.window = std::size_t(value);
        else if (name == "--payload" && value > 0) settings.payload = std::size_t(value);
        else if (name == "--warm-up-ms") settings.warm_up = std::chrono::milliseconds(value);
        else if (name == "--ms" && value > 0) settings.measured = std::chrono::milliseconds(value);
        else {
            std::cerr << "unknown: " << name << "; echo [URL] [--connections N] [--window N] "
                      << "[--payload BYTES] [--warm-up-ms N] [--ms N] [--send]" << std::endl;
            return 2;
        }
    }
    return run(settings);
}
