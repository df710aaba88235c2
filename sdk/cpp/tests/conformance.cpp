// Plays the scenarios of conformance/README.md.

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <set>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "support.hpp"

using namespace playfield;

namespace {

/// Why a step failed.
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr std::chrono::seconds step_max{20};

std::string name_of(Value step, const char *member, const char *otherwise = nullptr) {
    if (Value found = step[member]) return found.text();
    if (!otherwise) throw Failed(std::string("it has no ") + member);
    return otherwise;
}

bool is_fraction(Value number) { return number.json().find('.') != std::string::npos; }

/// Whether values are equal, however their integers are written.
bool equal(Value expected, Value found) {
    if (expected.kind() != found.kind()) {
        bool mixed = (expected.kind() == PF_KIND_NUMBER && found.kind() == PF_KIND_TEXT) ||
                     (expected.kind() == PF_KIND_TEXT && found.kind() == PF_KIND_NUMBER);
        auto bare = [](Value value) {
            return value.kind() == PF_KIND_TEXT ? value.text() : value.json();
        };
        return mixed && bare(expected) == bare(found);
    }
    switch (expected.kind()) {
    case PF_KIND_NUMBER:
        return expected == found || expected.as<double>() == found.as<double>() ||
               (is_fraction(expected) && expected.as<float>() == found.as<float>());
    case PF_KIND_LIST:
    case PF_KIND_MAP: {
        auto one = expected.entries(), other = found.entries();
        return one.size() == other.size() &&
               std::equal(one.begin(), one.end(), other.begin(), [](const Entry &a, const Entry &b) {
                   return a.key == b.key && equal(a.value, b.value);
               });
    }
    default:
        return expected == found;
    }
}

void must_equal(Value expected, Value found) {
    if (!equal(expected, found)) throw Failed("it is " + found.json());
}

/// Whether the members of one map are in another, which may have more.
bool contained(Value expected, Value found) {
    for (const auto &[name, value] : expected.entries()) {
        if (!equal(value, found.member(name))) return false;
    }
    return true;
}

/// Asks the scenario server for something.
std::string control(const std::string &server, const std::string &path) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    auto colon = server.rfind(':');
    address.sin_port = htons(std::uint16_t(std::stoi(server.substr(colon + 1))));
    inet_pton(AF_INET, server.substr(0, colon).c_str(), &address.sin_addr);
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || ::connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) {
        throw Failed("the scenario server can't be reached");
    }
    std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: " + server + "\r\nConnection: close\r\n\r\n";
    std::string answer;
    if (::write(socket, request.data(), request.size()) == ssize_t(request.size())) {
        char buffer[4096];
        for (ssize_t got; (got = ::read(socket, buffer, sizeof buffer)) > 0;) {
            answer.append(buffer, std::size_t(got));
        }
    }
    ::close(socket);
    auto body = answer.find("\r\n\r\n");
    if (body == std::string::npos) throw Failed("the control did not answer");
    if (!answer.starts_with("HTTP/1.1 200 ")) throw Failed(answer.substr(body + 4));
    return answer.substr(body + 4);
}

/// Something that happened, kept until a step expects it.
struct Happened {
    std::string kind;
    std::string name = {};
    Document value = {};
    Error error = {};
    std::uint64_t number = 0;
    bool yes = false;
};

struct RoomPlayed {
    Room room;
    std::deque<Happened> events;
    std::deque<Document> changes;
};

struct ChannelPlayed {
    Channel channel;
    std::deque<Happened> events;
    bool is_first = true;
};

struct Actor {
    std::string link;
    Client client;
    std::map<std::string, std::shared_ptr<RoomPlayed>> rooms;
    std::map<std::string, std::shared_ptr<ChannelPlayed>> channels;
    std::map<std::string, std::shared_ptr<std::optional<Result<Document>>>> answers;
    std::deque<Happened> statuses, commands;
    Device device;

    std::string action(const std::string &what) const {
        return "/links/" + link.substr(link.rfind(':') + 1) + '/' + what;
    }
    RoomPlayed &room(const std::string &name) {
        auto found = rooms.find(name);
        if (found == rooms.end()) throw Failed("it is in no room " + name);
        return *found->second;
    }
    ChannelPlayed &channel(const std::string &name) {
        auto found = channels.find(name);
        if (found == channels.end()) throw Failed("it does not subscribe to " + name);
        return *found->second;
    }
};

/// What a client leaves out.
struct LeftOut {
    Document file;

    std::string why_not(Value scenario) const {
        if (Value why = file["scenarios"].member(scenario["name"].text())) return why.text();
        for (const auto &[index, step] : scenario["steps"].entries()) {
            if (step["do"]) {
                if (Value why = file["steps"].member(step["do"].text())) return why.text();
            }
        }
        return {};
    }
};

class Play {
public:
    Play(std::string controls, std::string format, std::string transport, std::string run,
         const LeftOut &left_out)
        : controls_(std::move(controls)), format_(std::move(format)),
          transport_(std::move(transport)), run_(std::move(run)), left_out_(left_out) {}

    void all(Value scenario) {
        int number = 0;
        for (const auto &[index, step] : scenario["steps"].entries()) {
            ++number;
            try {
                auto filled = Document::parse(fill(step.json()));
                if (!filled) throw Failed(filled.error().message);
                one(*filled);
            } catch (const std::exception &why) {
                throw Failed("step " + std::to_string(number) + ", " + step.json() + ": " + why.what());
            }
        }
        for (auto &[name, actor] : actors_) {
            actor->rooms.clear();
            actor->channels.clear();
            actor->device = {};
            (void)actor->client.close().wait();
            actor->client.free();
        }
    }

    ~Play() {
        for (auto &[name, actor] : actors_) actor->client.free();
    }

private:
    /// Replaces the references in a step. What they stand for needs no escapes in JSON.
    std::string fill(std::string text) {
        for (auto at = text.find("${"); at != std::string::npos; at = text.find("${")) {
            auto end = text.find('}', at);
            if (end == std::string::npos) throw Failed("a reference has no end");
            std::string name = text.substr(at + 2, end - at - 2);
            std::string filling = run_;
            if (name != "run") {
                auto one = name.find('.'), two = name.rfind('.');
                if (one == std::string::npos || one == two) throw Failed(name + " refers to nothing");
                Room &room = actor(name.substr(0, one)).room(name.substr(one + 1, two - one - 1)).room;
                std::string member = name.substr(two + 1);
                if (member == "id") filling = room.id();
                else if (member == "key") filling = room.key();
                else if (member == "player") filling = std::to_string(room.player());
                else throw Failed("a room has no " + member);
            }
            text.replace(at, end - at + 1, filling);
        }
        return text;
    }

    Actor &actor(const std::string &name) {
        auto found = actors_.find(name);
        if (found == actors_.end()) throw Failed(name + " is not connected");
        return *found->second;
    }

    /// Runs all clients until a condition holds.
    template <class So> void until(So so) {
        auto end = std::chrono::steady_clock::now() + step_max;
        while (!so()) {
            if (std::chrono::steady_clock::now() > end) throw Failed("nothing in 20 seconds");
            std::size_t happened = 0;
            for (auto &[name, actor] : actors_) happened += actor->client.poll().value_or(0);
            if (happened == 0) {
                auto waits = actors_.empty() ? nullptr : actors_.begin()->second;
                if (waits) (void)waits->client.poll(std::chrono::milliseconds(1));
            }
        }
    }

    /// The result of a future; all clients keep running meanwhile.
    template <class T> Result<T> result(Future<T> future) {
        until([&] { return future.ready(); });
        return std::move(future).wait();
    }

    static void is_code(Value step, const Error &error) {
        if (step["code"] && step["code"].text() != error.reason) {
            throw Failed("the code is " + error.reason + ": " + error.message);
        }
    }

    /// What was made; none if it was refused as the step says.
    template <class T> static bool taken(Value step, const Result<T> &made) {
        Value refused = step["refused"];
        if (!refused) {
            if (!made) throw Failed(made.error().message);
            return true;
        }
        if (made) throw Failed("it was not refused");
        is_code(refused, made.error());
        if (refused["text"] && refused["text"].text() != made.error().said) {
            throw Failed("the text is " + made.error().said);
        }
        return false;
    }

    void one(Value step) {
        if (Value expected = step["expect"]) {
            if (!left_out_.file["steps"].member(expected.text())) expect(expected.text(), step);
            return;
        }
        std::string action = name_of(step, "do"), name = name_of(step, "client");
        if (action == "connect") return connect(step, name);
        if (action == "close") {
            auto closed = result(actor(name).client.close());
            if (!closed) throw Failed(closed.error().message);
            return;
        }
        act(actor(name), action, step);
    }

    void connect(Value step, const std::string &name) {
        auto actor = std::make_shared<Actor>();
        std::string node = step["link"] ? '/' + step["link"].text() : "";
        actor->link = control(controls_, "/link" + node);
        Options options;
        bool is_secure = step["tls"].as<bool>();
        std::string secure = transport_ == "ws" ? "wss" : "tls";
        options.url = (is_secure ? secure : transport_) + "://" + actor->link;
        if (is_secure && (!step["trusts"] || step["trusts"].as<bool>())) {
            options.root_certificates.push_back(certificate(node));
        }
        options.name = name_of(step, "name", name.c_str());
        options.token = name_of(step, "token", "");
        if (step["tokens"]) {
            std::vector<std::string> tokens;
            for (const auto &[index, token] : step["tokens"].entries()) tokens.push_back(token.text());
            options.token_by = [tokens, asked = std::size_t(0)]() mutable {
                return std::optional(tokens.at(std::min(asked++, tokens.size() - 1)));
            };
        }
        if (step["reconnects"] && !step["reconnects"].as<bool>()) {
            options.reconnect_timeout = std::chrono::milliseconds(0);
        }
        options.backoff_first = std::chrono::milliseconds(5);
        options.backoff_most = std::chrono::milliseconds(20);
        auto client = Client::create(options);
        if (!client) throw Failed(client.error().message);
        actor->client = *client;
        auto status = [actor = actor.get()](const char *kind, const Error &error = {}) {
            actor->statuses.push_back({kind, {}, {}, error});
        };
        client->on_lost([=](const Error &error) { status("lost", error); });
        client->on_resumed([=](auto) { status("resumed"); });
        client->on_new_session([=](auto) { status("new_session"); });
        client->on_weak([=](bool is_weak) { status(is_weak ? "weak" : "back"); });
        auto connected = client->connect();
        // Its events are taken by the step that expects them.
        auto made = std::move(connected).wait(step_max);
        client->on_ended([=](const Error &error) { status("ended", error); });
        if (taken(step, made)) actors_[name] = actor;
        else client->free();
    }

    /// A node's certificate, in DER.
    std::string certificate(const std::string &node) {
        auto text = VALUE(Document::parse('"' + control(controls_, "/certificate" + node) + '"'));
        auto bytes = VALUE(text.bytes());
        return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
    }

    /// The id to join: the step's, or a ticket.
    std::string id_of(Value step) {
        Value ticket = step["ticket"];
        if (!ticket) return name_of(step, "id");
        return control(controls_, "/ticket/" + name_of(ticket, "type") + '/' + name_of(ticket, "key") +
                                      '/' + name_of(ticket, "name"));
    }

    void joined(Actor &actor, Value step, Future<Room> joining) {
        auto made = result_of_join(actor, std::move(joining));
        if (taken(step, made.first)) actor.rooms[name_of(step, "room", "room")] = made.second;
    }

    /// Listens to a room before anything else happens in it.
    std::pair<Result<Room>, std::shared_ptr<RoomPlayed>> result_of_join(Actor &, Future<Room> joining) {
        auto played = std::make_shared<RoomPlayed>();
        auto found = std::make_shared<std::optional<Result<Room>>>();
        std::move(joining).then([played, found](Result<Room> made) {
            found->emplace(made);
            if (!made) return;
            played->room = *made;
            auto *into = played.get();
            made->on_event([into](const RoomEvent &event) {
                into->events.push_back({"event", std::string(event.name), VALUE(event.value.keep())});
            });
            made->on_missed([into](std::uint64_t events) {
                into->events.push_back({"missed", {}, {}, {}, events});
            });
            made->on_refused([into](const Error &error) {
                into->events.push_back({"error", {}, {}, error});
            });
        });
        until([&] { return found->has_value(); });
        return {**found, played};
    }

    void act(Actor &actor, const std::string &action, Value step) {
        auto json = [&](const char *member) {
            return step[member] ? std::optional<Json>(Json(step[member])) : std::nullopt;
        };
        auto is = [&](const char *member) { return step[member].as<bool>(); };
        std::string room = name_of(step, "room", "room");
        Client &client = actor.client;
        if (action == "join") {
            joined(actor, step, client.join(id_of(step)));
        } else if (action == "join_by_key") {
            joined(actor, step, client.join_by_key(name_of(step, "type"), name_of(step, "key")));
        } else if (action == "create") {
            Creation creation;
            creation.is_private = is("private");
            creation.code = is("code");
            creation.key = name_of(step, "key", "");
            creation.options = json("options");
            joined(actor, step, client.create_room(name_of(step, "type"), creation));
        } else if (action == "join_or_create") {
            joined(actor, step, client.join_or_create(name_of(step, "type"), name_of(step, "key", ""),
                                                      json("options")));
        } else if (action == "leave") {
            auto leaving = actor.room(room).room.leave();
            (void)taken(step, result(std::move(leaving)));
            actor.rooms.erase(room);
        } else if (action == "send") {
            Json payload = step["payload"] ? Json(step["payload"]) : Json();
            (void)taken(step, actor.room(room).room.send(name_of(step, "message"), payload));
        } else if (action == "request") {
            Json payload = step["payload"] ? Json(step["payload"]) : Json();
            auto asked = actor.room(room).room.request(name_of(step, "message"), payload);
            if (step["as"]) {
                auto answer = std::make_shared<std::optional<Result<Document>>>();
                std::move(asked).then([answer](Result<Document> made) { answer->emplace(made); });
                actor.answers[step["as"].text()] = answer;
                return;
            }
            auto reply = result(std::move(asked));
            if (taken(step, reply) && step["reply"]) must_equal(step["reply"], *reply);
        } else if (action == "watch") {
            auto *into = &actor.room(room);
            auto watch = into->room.on_change("**", [into](const Change &change) {
                static constexpr const char *kinds[] = {"", "entered", "changed", "left", "moved"};
                auto told = Json::object({{"path", path(change.path)}, {"kind", kinds[change.kind]}});
                if (change.before) told.set("old", Json(change.before));
                if (change.after) told.set("new", Json(change.after));
                into->changes.push_back(VALUE(Document::parse(told.text())));
            });
            if (!watch) throw Failed(watch.error().message);
        } else if (action == "cut" || action == "restore" || action == "hold" || action == "move" ||
                   action == "alone" || action == "stop" || action == "lose_patch" || action == "spoil_check") {
            (void)control(controls_, actor.action(action));
        } else if (action == "cut_after") {
            (void)control(controls_, actor.action(action + '/' + name_of(step, "bytes")));
        } else if (action == "list") {
            auto rooms = result(client.list(name_of(step, "type", ""), json("filter"),
                                            step["limit"].as<std::uint32_t>()));
            if (!taken(step, rooms)) return;
            auto found = rooms->entries();
            if (found.size() != step["rooms"].size()) throw Failed("it is " + rooms->json());
            for (const auto &[index, expected] : step["rooms"].entries()) {
                auto same = [&](const Entry &other) { return contained(expected, other.value); };
                auto at = std::find_if(found.begin(), found.end(), same);
                if (at == found.end()) throw Failed("it is " + rooms->json());
                found.erase(at);
            }
        } else if (action == "schema") {
            auto schema = result(client.schema(name_of(step, "type")));
            if (!taken(step, schema)) return;
            for (const auto &[member, expected] : step["has"].entries()) {
                auto names = Json::array();
                for (const auto &[index, of] : (*schema)[member].entries()) {
                    names.push(Json(of["name"].text()));
                }
                must_equal(expected, VALUE(Document::parse(names.text())));
            }
        } else if (action == "subscribe") {
            subscribe(actor, step);
        } else if (action == "unsubscribe") {
            (void)actor.channel(name_of(step, "channel"));
            actor.channels.erase(name_of(step, "channel"));
        } else if (action == "publish") {
            (void)taken(step, result(client.publish(name_of(step, "channel"), Json(step["payload"]))));
        } else if (action == "members") {
            auto members = result(client.members(name_of(step, "channel")));
            if (!taken(step, members)) return;
            std::multiset<std::string> found, expected;
            for (const auto &[index, member] : (*members)["members"].entries()) {
                found.insert(member["name"].text());
            }
            for (const auto &[index, name] : step["names"].entries()) expected.insert(name.text());
            if (found != expected) throw Failed("they are " + members->json());
        } else if (action == "history") {
            auto history = result(client.history(name_of(step, "channel"), {},
                                                 step["limit"].as<std::uint32_t>()));
            if (!taken(step, history)) return;
            auto payloads = Json::array();
            for (const auto &[index, publication] : (*history)["publications"].entries()) {
                payloads.push(Json(publication["payload"]));
            }
            must_equal(step["payloads"], VALUE(Document::parse(payloads.text())));
        } else if (action == "register") {
            register_device(actor, step);
        } else if (action == "report") {
            auto reply = result(actor.device.report(Json(step["payload"])));
            if (taken(step, reply) && step["reply"]) must_equal(step["reply"], *reply);
        } else if (action == "push" || action == "command") {
            command(action == "push" ? "push" : "request", step);
        } else if (action == "end_sessions") {
            run_control("/users/" + name_of(step, "user") + "/end/" + name_of(step, "text"));
        } else if (action == "take_out") {
            run_control("/users/" + name_of(step, "user") + "/take_out/" + name_of(step, "channel"));
        } else {
            throw Failed("the C++ client can't " + action);
        }
    }

    /// A path as a list of names and indexes. Names that are not plain are quoted.
    static Json path(std::string_view text) {
        auto steps = Json::array();
        while (!text.empty()) {
            auto end = text.front() == '"' ? text.find('"', 1) + 1 : text.find('.');
            std::string_view step = text.substr(0, end);
            if (step.front() == '"') step = step.substr(1, step.size() - 2);
            steps.push(Json(step));
            text = end < text.size() ? text.substr(end + 1) : std::string_view();
        }
        return steps;
    }

    void subscribe(Actor &actor, Value step) {
        std::string name = name_of(step, "channel");
        auto played = std::make_shared<ChannelPlayed>();
        auto found = std::make_shared<std::optional<Result<Channel>>>();
        actor.client.subscribe(name, step["presence"].as<bool>())
            .then([played, found](Result<Channel> made) {
                found->emplace(made);
                if (!made) return;
                played->channel = *made;
                auto *into = played.get();
                made->on_subscribed([into](bool recovered, std::uint64_t) {
                    // The first is the answer to the step.
                    if (std::exchange(into->is_first, false)) return;
                    into->events.push_back({"subscribed", {}, {}, {}, 0, recovered});
                });
                made->on_missed([into](std::uint64_t missed) {
                    into->events.push_back({"missed", {}, {}, {}, missed});
                });
                made->on_publication([into](const Publication &publication) {
                    into->events.push_back({"publication", {}, VALUE(publication.value.keep())});
                });
                made->on_presence([into](std::string_view who, bool joined) {
                    into->events.push_back({"presence", std::string(who), {}, {}, 0, joined});
                });
                made->on_unsubscribed([into](const Error &error) {
                    into->events.push_back({"unsubscribed", {}, {}, error});
                });
            });
        until([&] { return found->has_value() && (!**found || !played->is_first); });
        if (taken(step, **found)) actor.channels[name] = played;
    }

    /// Listens to the device before anything else happens to it.
    void register_device(Actor &actor, Value step) {
        Registration registration(name_of(step, "device"));
        for (const auto &[name, value] : step["metadata"].entries()) {
            registration.metadata.emplace_back(name, value.text());
        }
        for (const auto &[index, tag] : step["tags"].entries()) registration.tags.push_back(tag.text());
        auto found = std::make_shared<std::optional<Result<Device>>>();
        auto *into = &actor.commands;
        actor.client.register_device(registration).then([found, into](Result<Device> made) {
            found->emplace(made);
            if (!made) return;
            made->on_command([into](Command command) {
                into->push_back({"commanded", {}, VALUE(command.value.keep())});
                VALUE(command.answer(command.value.as<int>() + 1));
            });
        });
        until([&] { return found->has_value(); });
        if (!taken(step, **found)) return;
        actor.device = ***found;
        if (step["is_new"] && step["is_new"].as<bool>() != actor.device.is_new()) {
            throw Failed(actor.device.is_new() ? "it is new" : "it is not new");
        }
    }

    /// Commands a device. The control of a request waits for its answer, so clients run meanwhile.
    void command(const std::string &action, Value step) {
        std::string path = "/devices/" + name_of(step, "device") + '/' + action + '/' +
                           step["payload"].json();
        std::string answer = run_control(path);
        if (step["answer"]) must_equal(step["answer"], VALUE(Document::parse(answer)));
    }

    /// Asks the scenario server for something, while clients run.
    std::string run_control(const std::string &path) {
        auto asked = std::async(std::launch::async, control, controls_, path);
        until([&] { return asked.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
        return asked.get();
    }

    /// The next that happened, but for those of a kind to pass over.
    Happened next(std::deque<Happened> &from, const std::string &kind, const char *but = "") {
        until([&] {
            while (!from.empty() && from.front().kind == but) from.pop_front();
            return !from.empty();
        });
        Happened found = std::move(from.front());
        from.pop_front();
        if (found.kind != kind) {
            throw Failed(found.kind + ' ' + found.name + " came: " + found.value.json() +
                         found.error.message);
        }
        return found;
    }

    void expect(const std::string &kind, Value step) {
        Actor &actor = this->actor(name_of(step, "client"));
        if (kind == "lost_patch" || kind == "spoiled_check" || kind == "snapshot" ||
            kind == "all_cut" || kind == "played") {
            (void)run_control(actor.action(kind));
        } else if (kind == "status") {
            auto found = next(actor.statuses, name_of(step, "status"));
            if (step["code"]) is_code(step, found.error);
        } else if (kind == "commanded") {
            must_equal(step["payload"], next(actor.commands, kind).value);
        } else if (kind == "answer") {
            auto answer = actor.answers[name_of(step, "as")];
            if (!answer) throw Failed("there is no such request");
            until([&] { return answer->has_value(); });
            const auto &reply = **answer;
            if (step["lost"]) {
                if (reply) throw Failed("it was answered");
                bool unknown = reply.error().is_lost() || reply.error().reason == "connection_lost";
                if (!unknown) throw Failed(reply.error().message);
            } else if (taken(step, reply) && step["reply"]) {
                must_equal(step["reply"], *reply);
            }
        } else if (kind == "publications") {
            auto &events = actor.channel(name_of(step, "channel")).events;
            auto payloads = step["payloads"].entries();
            for (std::size_t place = 0; place < payloads.size();) {
                until([&] { return !events.empty(); });
                Happened one = std::move(events.front());
                events.pop_front();
                if (one.kind == "publication") {
                    must_equal(payloads[place++].value, one.value);
                    continue;
                }
                bool may_miss = step["some_missed"].as<bool>();
                bool is_gap = one.kind == "subscribed" || one.kind == "missed";
                if (!is_gap || (one.number > 0 && !may_miss)) throw Failed(one.kind + " came");
                place += one.number;
            }
        } else if (kind == "publication" || kind == "presence" || kind == "subscribed" ||
                   kind == "unsubscribed") {
            auto &events = actor.channel(name_of(step, "channel")).events;
            // How many were missed is what `publications` expects.
            auto found = next(events, kind, "missed");
            if (kind == "publication") must_equal(step["payload"], found.value);
            if (kind == "unsubscribed") is_code(step, found.error);
            bool is_so = kind == "presence" ? found.name == step["name"].text() &&
                                                  found.yes == step["joined"].as<bool>()
                         : kind == "subscribed" ? found.yes == step["recovered"].as<bool>()
                                                : true;
            if (!is_so) throw Failed("it is " + found.name + (found.yes ? " true" : " false"));
        } else {
            expect_in_room(actor.room(name_of(step, "room", "room")), kind, step);
        }
    }

    void expect_in_room(RoomPlayed &played, const std::string &kind, Value step) {
        if (kind == "state") {
            auto is_so = [&] {
                Value found = played.room.state();
                for (const auto &[index, name] : step["at"].entries()) {
                    found = found.member(name.kind() == PF_KIND_TEXT ? name.text() : name.json());
                }
                return step["is"] ? found && equal(step["is"], found) : !found;
            };
            try {
                until(is_so);
            } catch (const Failed &why) {
                throw Failed(std::string(why.what()) + "; the state is " + played.room.state().json());
            }
        } else if (kind == "info") {
            Value found = played.room.info().member(step["member"].text());
            if (!(found ? equal(step["is"], found) : step["is"].is_null())) {
                throw Failed("it is " + played.room.info().json());
            }
        } else if (kind == "event") {
            auto found = next(played.events, kind);
            if (found.name != step["event"].text()) {
                throw Failed(found.name + " came: " + found.value.json());
            }
            if (step["payload"]) must_equal(step["payload"], found.value);
        } else if (kind == "missed") {
            (void)next(played.events, kind);
        } else if (kind == "error") {
            is_code(step, next(played.events, kind).error);
        } else if (kind == "left") {
            until([&] { return played.room.ending().has_value(); });
            is_code(step, *played.room.ending());
            if (step["text"] && step["text"].text() != played.room.ending()->said) {
                throw Failed("the text is " + played.room.ending()->said);
            }
        } else if (kind == "changes") {
            auto expected = step["are"].entries();
            until([&] { return played.changes.size() >= expected.size(); });
            std::vector<Document> found(played.changes.begin(),
                                        played.changes.begin() + std::ptrdiff_t(expected.size()));
            played.changes.erase(played.changes.begin(),
                                 played.changes.begin() + std::ptrdiff_t(expected.size()));
            for (const auto &[index, change] : expected) {
                auto same = [&](const Document &other) { return same_change(change, other); };
                auto at = step["in_any_order"] ? std::find_if(found.begin(), found.end(), same)
                                               : found.begin();
                if (at == found.end() || !same(*at)) {
                    throw Failed(at == found.end() ? "not " + change.json() : "it is " + at->json());
                }
                found.erase(at);
            }
        } else {
            throw Failed("the C++ client does not expect " + kind);
        }
    }

    /// Paths here are texts, so that an index is one too.
    static bool same_change(Value expected, Value found) {
        auto names = Json::array();
        for (const auto &[index, step] : expected["path"].entries()) {
            names.push(Json(step.kind() == PF_KIND_TEXT ? step.text() : step.json()));
        }
        auto with = Json::object({{"path", names}});
        for (const auto &[name, value] : expected.entries()) {
            if (name != "path") with.set(name, Json(value));
        }
        return equal(VALUE(Document::parse(with.text())), found);
    }

    std::string controls_, format_, transport_, run_;
    const LeftOut &left_out_;
    std::map<std::string, std::shared_ptr<Actor>> actors_;
};

} // namespace

int main(int count, char **arguments) {
    test::Process server(test::environment("TEST_SCENARIOS"));
    std::string url = server.line();
    std::string controls = url.substr(url.rfind('/') + 1);
    std::string folder = test::environment("TEST_WORKSPACE") + "/conformance";
    LeftOut left_out{VALUE(Document::parse(test::file(folder + "/clients/cpp.json")))};

    std::vector<std::filesystem::path> files;
    for (const auto &file : std::filesystem::directory_iterator(folder + "/scenarios")) {
        files.push_back(file.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<Document> groups;
    for (const auto &file : files) groups.push_back(VALUE(Document::parse(test::file(file))));
    const char *cuts = std::getenv("PLAYFIELD_CUTS");
    auto generated = control(controls, std::string("/generated/") + (cuts ? cuts : "200") + "/tls");
    groups.push_back(VALUE(Document::parse(generated)));
    int runs = 0, failed = 0;
    std::set<std::string> names;
    for (const auto &group : groups) {
        for (const auto &[index, scenario] : group["scenarios"].entries()) {
            std::string name = scenario["name"].text();
            names.insert(name);
            // With an argument, only that one.
            if (count > 1 && name != arguments[1]) continue;
            if (auto why = left_out.why_not(scenario); !why.empty()) {
                std::cout << "left out: " << name << ": " << why << std::endl;
                continue;
            }
            for (const auto &[i, format] : left_out.file["formats"].entries()) {
                for (const auto &[j, transport] : left_out.file["transports"].entries()) {
                    ++runs;
                    Play play(controls, format.text(), transport.text(), "c" + std::to_string(runs),
                              left_out);
                    try {
                        play.all(scenario);
                    } catch (const std::exception &why) {
                        ++failed;
                        std::cout << name << " in " << format.text() << " over " << transport.text()
                                  << ": " << why.what() << std::endl;
                    }
                }
            }
        }
    }
    for (const auto &[name, why] : left_out.file["scenarios"].entries()) {
        if (!names.contains(std::string(name))) {
            test::fail(__FILE__, __LINE__, "there is no scenario " + std::string(name));
        }
    }
    std::cout << failed << " of " << runs << " failed" << std::endl;
    CHECK(runs > 0 && failed == 0);
    VALUE(shut_down());
}
