// The examples run against the nodes that they are for.

#include "support.hpp"

using namespace playfield;

static std::string runs(const std::string &name, const std::vector<std::string> &arguments) {
    test::Process example(test::environment("TEST_EXAMPLES") + '/' + name, arguments);
    std::string printed = example.rest();
    if (int code = example.end(); code != 0) {
        test::fail(__FILE__, __LINE__, name + " ended with " + std::to_string(code) + ":\n" + printed);
    }
    return printed;
}

static bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

int main() {
    {
        test::Process showcase(test::environment("TEST_SHOWCASE"), {},
                               {"PLAYFIELD_LISTEN=127.0.0.1:0", "PLAYFIELD_LOG=error"});
        std::string line = showcase.line();
        auto begin = line.find("http://") + 7;
        std::string address = line.substr(begin, line.find('/', begin) - begin);
        CHECK(contains(runs("hello", {"tcp://" + address, "Ann"}), "after adding 2 it is "));
        CHECK(contains(runs("hello", {"ws://" + address, "Ann"}), "after adding 2 it is "));
        CHECK(contains(runs("hello_c", {"tcp://" + address, "Ann"}), "after adding 2 it is "));
        std::string arena = runs("arena", {"tcp://" + address, "Ann", "10"});
        CHECK(contains(arena, "10 updates") && contains(arena, "Ann"));
        CHECK_EQUAL(showcase.end(true), 0);
    }
    test::Node node;
    for (const std::string mode : {"send", "request"}) {
        std::string printed = runs("echo_driver", {node.tcp(), "4", "10", "64", mode, "0.2"});
        auto found = VALUE(Document::parse(printed));
        CHECK(found["messages"].as<int>() > 0);
        CHECK_EQUAL(found["compared"].as<int>(), found["messages"].as<int>());
        CHECK(found["rtt_us_p50"].as<double>() > 0);
    }
}
