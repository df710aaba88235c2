#include <iostream>

#include <playfield.hpp>

int main() {
    auto parsed = playfield::Document::parse(R"({"answer": 42})");
    std::cout << parsed->json() << std::endl;
    return (*parsed)["answer"].as<int>() == 42 ? 0 : 1;
}
