// The Playfield client for C++20: a header over the C ABI, playfield.h. docs/cpp.md is its guide.

#pragma once

#include "playfield/client.hpp"
#include "playfield/future.hpp"
#include "playfield/json.hpp"
#include "playfield/packed.hpp"
#include "playfield/result.hpp"
#include "playfield/value.hpp"
