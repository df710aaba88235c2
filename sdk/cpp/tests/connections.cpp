// Many connections, opened and closed again and again: test_connections [CONNECTIONS] [TIMES]. It
// fails if the process holds more file descriptors or, in the long run, more memory than before.

#include <filesystem>

#include "support.hpp"

using namespace playfield;

/// In each room.
constexpr std::size_t players = 20;

static std::size_t descriptors() {
    std::size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        (void)entry;
        ++count;
    }
    return count;
}

static std::size_t resident_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
    }
    return 0;
}

static void one_round(const test::Node &node, std::size_t connections, int round) {
    std::vector<Client> clients;
    std::vector<Future<void>> connecting;
    for (std::size_t i = 0; i < connections; ++i) {
        Options options;
        options.url = i % 2 == 0 ? node.tcp() : node.ws();
        options.name = "client " + std::to_string(i);
        options.timeout = std::chrono::seconds(60);
        clients.push_back(VALUE(Client::create(options)));
        connecting.push_back(clients.back().connect());
    }
    for (auto &connected : connecting) VALUE(std::move(connected).wait(std::chrono::seconds(90)));
    std::vector<Future<Room>> joining;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        // In one room each would be sent every other's arrival, which takes longer than all else.
        std::string key = std::to_string(round) + ' ' + std::to_string(i / players);
        joining.push_back(clients[i].join_or_create("hello", key));
    }
    std::vector<Room> rooms;
    for (auto &joined : joining) rooms.push_back(VALUE(std::move(joined).wait(std::chrono::seconds(90))));
    std::vector<Future<Document>> replies;
    for (auto &room : rooms) replies.push_back(room.request("Add", 1));
    for (auto &reply : replies) (void)VALUE(std::move(reply).wait(std::chrono::seconds(90)));
    // By turns: they say goodbye and wait, they are freed with their rooms, or their rooms first.
    switch (round % 3) {
    case 0: {
        std::vector<Future<void>> closing;
        for (auto &client : clients) closing.push_back(client.close());
        for (auto &closed : closing) VALUE(std::move(closed).wait(std::chrono::seconds(90)));
        break;
    }
    case 1:
        for (auto &client : clients) client.free();
        break;
    default:
        rooms.clear();
        break;
    }
}

int main(int count, char **arguments) {
    std::size_t connections = count > 1 ? std::stoul(arguments[1]) : 100;
    int times = count > 2 ? std::stoi(arguments[2]) : 6;
    test::Node node;
    std::size_t before = 0, memory = 0;
    std::cout << "before: " << descriptors() << " descriptors, " << resident_kib() << " KiB"
              << std::endl;
    for (int round = 0; round < times; ++round) {
        one_round(node, connections, round);
        // The goodbyes end in the background.
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        std::size_t now = descriptors();
        while (round > 0 && now > before && std::chrono::steady_clock::now() < end) {
            ::usleep(1000);
            now = descriptors();
        }
        if (round == 0) {
            while (std::chrono::steady_clock::now() < end && descriptors() > 32) ::usleep(1000);
            before = now = descriptors();
        } else {
            CHECK(now <= before);
        }
        // The first rounds fill caches.
        if (round == times / 4) memory = resident_kib();
        if (round == 0 || round % 10 == 9 || round == times - 1) {
            std::cout << "after round " << round + 1 << ": " << now << " descriptors, "
                      << resident_kib() << " KiB" << std::endl;
        }
    }
    std::size_t grown = resident_kib() - std::min(memory, resident_kib());
    std::cout << connections << " connections, " << times << " times: " << grown
              << " KiB more since a quarter of the rounds" << std::endl;
    if (times >= 50) CHECK(grown < memory / 2);
    VALUE(shut_down());
}
