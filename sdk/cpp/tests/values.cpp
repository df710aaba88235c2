// Values: JSON that is built, parsed and read.

#include <algorithm>
#include <cmath>
#include <span>

#include "support.hpp"

using namespace playfield;

static void built_json_is_read_back() {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(std::byte(i));
    auto json = Json::object({
        {"small", -3},
        {"large", std::uint64_t(18446744073709551615u)},
        {"least", std::int64_t(INT64_MIN)},
        {"float", 0.1f},
        {"infinite", INFINITY},
        {"nan", NAN},
        {"yes", true},
        {"nothing", nullptr},
        {"text", "a \"quoted\" \\ line\n\x01 é"},
        {"list", Json::array({1, "two", Json::array()})},
        {"a.b", Json::object({{"c", 7}})},
        {"bytes", Json::bytes(bytes)},
        {"maybe", std::optional<int>(4)},
        {"none", std::optional<int>()},
    });
    auto read = VALUE(Document::parse(json.text()));
    CHECK_EQUAL(read["small"].as<int>(), -3);
    CHECK_EQUAL(VALUE(read["large"].get<std::uint64_t>()), 18446744073709551615u);
    CHECK_EQUAL(VALUE(read["least"].get<std::int64_t>()), INT64_MIN);
    CHECK_EQUAL(VALUE(read["float"].get<float>()), 0.1f);
    CHECK(std::isinf(VALUE(read["infinite"].get<double>())));
    CHECK(std::isnan(VALUE(read["nan"].get<double>())));
    CHECK(VALUE(read["yes"].get<bool>()));
    CHECK(read["nothing"].is_null() && read["none"].is_null());
    CHECK_EQUAL(read["text"].text(), "a \"quoted\" \\ line\n\x01 é");
    CHECK_EQUAL(read["list"].size(), 3u);
    CHECK_EQUAL(read["list.1"].text(), "two");
    CHECK_EQUAL(read["list"][1].text(), "two");
    CHECK_EQUAL(read["\"a.b\".c"].as<int>(), 7);
    CHECK_EQUAL(read.member("a.b").member("c").as<int>(), 7);
    CHECK(VALUE(read["bytes"].bytes()) == bytes);
    for (std::size_t size = 0; size < 8; ++size) {
        std::span some(bytes.data() + 250 - size, size);
        auto alone = VALUE(Document::parse(Json::bytes(some).text()));
        CHECK(std::ranges::equal(VALUE(alone.bytes()), some));
    }
    CHECK_EQUAL(read["maybe"].as<int>(), 4);
    auto whole = Json::object({{"a", 1}});
    CHECK_EQUAL(whole.set("b", whole).text(), R"({"a":1,"b":{"a":1}})");
    auto list = Json::array({1});
    CHECK_EQUAL(list.push(list).push(2).text(), "[1,[1],2]");
    CHECK_EQUAL(Json::object().text() + Json::array().text(), "{}[]");
    CHECK(VALUE(Document::parse(Json(read).text())) == read);
}

static void what_is_not_there_or_does_not_fit_is_an_error() {
    auto read = VALUE(Document::parse(R"({"n": 300, "t": "x", "l": [1]})"));
    CHECK_EQUAL(read["n"].get<std::int8_t>().error().code, PF_CODE_TYPE);
    CHECK_EQUAL(read["n"].get<std::string>().error().code, PF_CODE_TYPE);
    CHECK_EQUAL(read["t"].get<int>().error().code, PF_CODE_TYPE);
    CHECK_EQUAL(read["t"].bytes().error().code, PF_CODE_TYPE);
    CHECK_EQUAL(read["no"].get<int>().error().code, PF_CODE_NOT_FOUND);
    CHECK(!read["l.1"] && !read["l.x"] && !read["n.x"] && !read["\"n"] && !read["\"l\"x"]);
    CHECK_EQUAL(read["l"].entries().size(), 1u);
    CHECK(read["n"].entries().empty() && !read["no"] && read["no"] == read["neither"]);
    CHECK_EQUAL(Document::parse("{").error().code, PF_CODE_ARGUMENT);
    CHECK_EQUAL(Document::parse("").error().code, PF_CODE_ARGUMENT);
    CHECK(Document::parse(std::string(100'000, '[')).error().code == PF_CODE_ARGUMENT);
    auto thrown = false;
    try {
        (void)Document::parse("{").value();
    } catch (const Exception &exception) {
        thrown = exception.error().code == PF_CODE_ARGUMENT;
    }
    CHECK(thrown);
}

static void a_kept_value_outlives_its_tree() {
    Document kept;
    Value gone;
    {
        auto read = VALUE(Document::parse(R"({"a": {"b": [1, 2]}})"));
        gone = read["a"];
        kept = VALUE(gone.keep());
        CHECK(VALUE(read.keep()) == read);
    }
    CHECK_EQUAL(kept["b.1"].as<int>(), 2);
    CHECK(!gone);
    CHECK_EQUAL(gone.get<int>().error().code, PF_CODE_STALE);
    CHECK(gone.entries().empty() && gone.json().empty());
}

static void entries_can_be_read_in_parts() {
    auto read = VALUE(Document::parse(R"({"a": 1, "b": 2, "c": 3})"));
    pf_entry entries[2];
    std::size_t written = 9;
    CHECK_EQUAL(pf_value_entries(read.raw(), 1, entries, 2, &written), PF_CODE_OK);
    CHECK_EQUAL(written, 2u);
    CHECK_EQUAL(detail::view(entries[1].key), "c");
    CHECK_EQUAL(pf_value_entries(read.raw(), 3, entries, 2, &written), PF_CODE_OK);
    CHECK_EQUAL(written, 0u);
    CHECK_EQUAL(pf_value_entries(read.raw(), 0, nullptr, 0, &written), PF_CODE_OK);
    CHECK_EQUAL(pf_value_entries(read.raw(), 0, nullptr, 1, &written), PF_CODE_NULL);
}

int main() {
    built_json_is_read_back();
    what_is_not_there_or_does_not_fit_is_an_error();
    a_kept_value_outlives_its_tree();
    entries_can_be_read_in_parts();
}
