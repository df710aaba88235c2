// Devices of a real node: reports, pushes, requests and their answers.

#include "support.hpp"

using namespace playfield;

static Registration meter(const std::string &id) {
    Registration registration(id);
    registration.metadata = {{"model", "x2"}, {"at", "\"home\""}};
    registration.tags = {"north", "indoors"};
    return registration;
}

static void a_device_reports_and_answers(const std::string &url, const std::string &id) {
    Options options;
    options.url = url;
    auto client = VALUE(Client::open(options));
    auto device = VALUE(client.register_device(meter(id)).wait());
    CHECK_EQUAL(device.id(), id);
    CHECK(device.is_new() && !device.is_bytes());

    auto reply = VALUE(device.report(Json::object({{"celsius", 21.5}})).wait());
    CHECK_EQUAL(reply["celsius"].as<double>(), 21.5);
    auto refused = device.report("wrong").wait();
    CHECK(!refused && refused.error().is_refused());
    CHECK_EQUAL(refused.error().said, "that is not a reading");
    std::vector<Error> errors;
    client.on_refused([&](const Error &error) { errors.push_back(error); });
    VALUE(device.report_unconfirmed("wrong"));
    UNTIL(client, errors.size() == 1);
    CHECK_EQUAL(errors[0].said, "that is not a reading");

    std::vector<std::string> pushed;
    device.on_command([&](Command command) {
        CHECK(!command.wants_answer());
        pushed.push_back(command.value.text());
        VALUE(command.answer("nobody wants it"));
    });
    VALUE(device.report_unconfirmed("push"));
    UNTIL(client, pushed.size() == 1);
    VALUE(device.report_unconfirmed("push the tag"));
    UNTIL(client, pushed.size() == 2);
    CHECK_EQUAL(pushed[0] + ", " + pushed[1], "pushed, pushed");

    // What it answers, the node publishes.
    std::vector<std::string> answers;
    auto channel = VALUE(client.subscribe("chat:" + id).wait());
    channel.on_publication([&](const Publication &of) { answers.push_back(of.value.text()); });
    device.on_command([&](Command command) {
        CHECK(command.wants_answer());
        VALUE(command.answer(command.value.text() + " is well"));
        CHECK_EQUAL(command.answer("again").error().code, PF_CODE_NOT_FOUND);
    });
    VALUE(device.report_unconfirmed("ask"));
    UNTIL(client, answers.size() == 1);
    CHECK_EQUAL(answers[0], "state is well");

    // Later, and with a refusal.
    std::vector<Command> kept;
    device.on_command([&](Command command) { kept.push_back(command); });
    VALUE(device.report_unconfirmed("ask"));
    UNTIL(client, kept.size() == 1);
    VALUE(kept[0].refuse("the battery is empty"));
    UNTIL(client, answers.size() == 2);
    CHECK(answers[1].find("the battery is empty") != std::string::npos);

    // Another registration takes its place; one that is refused does not.
    bool is_over = false;
    device.on_unregistered([&] { is_over = true; });
    Registration stolen(id);
    stolen.metadata = {{"model", "stolen"}};
    auto not_registered = client.register_device(stolen).wait();
    CHECK_EQUAL(not_registered.error().said, "it is stolen");
    auto again = VALUE(client.register_device(meter(id)).wait());
    CHECK(!again.is_new());
    UNTIL(client, is_over);

    // Without the handle, requests are refused.
    VALUE(again.report_unconfirmed("ask"));
    again = Device();
    UNTIL(client, answers.size() == 3);
    CHECK(answers[2].starts_with("no: "));
    VALUE(client.close().wait());
}

static void metadata_and_tags_must_be_texts(const test::Node &node) {
    auto client = test::open(node.tcp());
    std::uint64_t request = 0;
    for (const char *metadata : {"[]", "{\"a\": 1}", "1", "{"}) {
        CHECK_EQUAL(pf_client_register(client.raw(), pf_str("meter"), pf_str(metadata), pf_str("[]"),
                                       &request),
                    PF_CODE_ARGUMENT);
    }
    for (const char *tags : {"{}", "[1]", "\"a\"", "["}) {
        CHECK_EQUAL(pf_client_register(client.raw(), pf_str("meter"), pf_str("{}"), pf_str(tags),
                                       &request),
                    PF_CODE_ARGUMENT);
    }
}

static void commands_end_with_the_handle(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto device = VALUE(client.register_device(meter("meter-slow")).wait());
    pf_device raw = device.raw();
    std::vector<Command> kept;
    device.on_command([&](Command command) { kept.push_back(command); });
    VALUE(device.report_unconfirmed("ask"));
    UNTIL(client, kept.size() == 1);
    CHECK_EQUAL(pf_device_answer(raw, 0, pf_str("1"), false), PF_CODE_NOT_FOUND);
    CHECK_EQUAL(pf_device_refuse(raw, UINT64_MAX, pf_str("no")), PF_CODE_NOT_FOUND);
    device = Device();
    CHECK_EQUAL(kept[0].answer(1).error().code, PF_CODE_FREED);
    CHECK_EQUAL(pf_device_answer(raw, 1, pf_str("1"), false), PF_CODE_FREED);
    kept.clear();
    auto another = VALUE(client.register_device(meter("meter-slow")).wait());
    client.free();
    CHECK_EQUAL(another.report(1).wait().error().code, PF_CODE_FREED);
    CHECK_EQUAL(another.report_unconfirmed(1).error().code, PF_CODE_FREED);
}

static void the_oldest_command_past_the_limit_is_refused(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto device = VALUE(client.register_device(meter("meter-full")).wait());
    std::vector<std::string> answers;
    auto channel = VALUE(client.subscribe("chat:meter-full").wait());
    channel.on_publication([&](const Publication &of) { answers.push_back(of.value.text()); });
    std::vector<Command> kept;
    device.on_command([&](Command command) { kept.push_back(command); });
    CHECK_EQUAL(PF_COMMANDS_MAX + 1, 1025);
    VALUE(device.report_unconfirmed("ask 1025 times"));
    UNTIL(client, kept.size() == PF_COMMANDS_MAX + 1 && answers.size() == 1);
    CHECK(answers[0].starts_with("no: "));
    CHECK_EQUAL(kept[0].answer("late").error().code, PF_CODE_NOT_FOUND);
    // Few at a time: the node leaves out publications for a client that does not keep up.
    for (std::size_t i = 1; i < kept.size(); ++i) {
        VALUE(kept[i].answer("in time"));
        if (i % 64 == 0) UNTIL(client, answers.size() == i + 1);
    }
    CHECK_EQUAL(std::count(answers.begin(), answers.end(), "in time"), PF_COMMANDS_MAX);
}

int main() {
    test::Node node;
    a_device_reports_and_answers(node.tcp(), "meter-tcp");
    a_device_reports_and_answers(node.ws(), "meter-ws");
    metadata_and_tags_must_be_texts(node);
    commands_end_with_the_handle(node);
    the_oldest_command_past_the_limit_is_refused(node);
    VALUE(shut_down());
}
