// Futures: answers that come in poll(). They can be awaited, waited for, or given a callback.

#pragma once

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "result.hpp"

namespace playfield {

namespace detail {

/// What completes futures: the client.
class Pump {
public:
    virtual ~Pump() = default;
    /// Waits for one thing to happen, and lets it happen.
    virtual Result<std::size_t> pump(std::chrono::milliseconds wait) = 0;
};

template <class T> struct FutureState {
    std::optional<Result<T>> result;
    std::coroutine_handle<> waiter;
    std::function<void(Result<T>)> then;
    std::weak_ptr<Pump> pump;
    bool is_done = false;

    void complete(Result<T> outcome) {
        if (is_done) return;
        is_done = true;
        if (then) return std::exchange(then, nullptr)(std::move(outcome));
        result.emplace(std::move(outcome));
        if (waiter) std::exchange(waiter, nullptr).resume();
    }
};

inline Error used_up() { return Error{PF_CODE_USAGE, "this future was used before"}; }

template <class T> class Awaiter {
public:
    explicit Awaiter(std::shared_ptr<FutureState<T>> state) : state_(std::move(state)) {}
    Awaiter(const Awaiter &) = delete;
    Awaiter &operator=(const Awaiter &) = delete;
    /// It is in the coroutine's frame, which may be destroyed while it waits.
    ~Awaiter() {
        if (is_waiting_) state_->waiter = nullptr;
    }

    bool await_ready() const { return !state_ || state_->result; }
    template <class Promise> void await_suspend(std::coroutine_handle<Promise> coroutine) {
        // Who waits for the coroutine polls what it waits for.
        if constexpr (requires { coroutine.promise().state->pump = state_->pump; }) {
            coroutine.promise().state->pump = state_->pump;
        }
        state_->waiter = coroutine;
        is_waiting_ = true;
    }
    Result<T> await_resume() {
        is_waiting_ = false;
        if (!state_) return used_up();
        return *std::exchange(state_->result, std::nullopt);
    }

private:
    std::shared_ptr<FutureState<T>> state_;
    bool is_waiting_ = false;
};

} // namespace detail

/// An answer that comes later, in poll(). Also what a coroutine may return: it begins at once, and
/// resumes in poll() whenever what it awaits is there.
///
///     playfield::Future<int> play(playfield::Client client) {
///         auto room = (co_await client.join_or_create("counter")).value();
///         auto reply = (co_await room.request("Add", 2)).value();
///         co_return reply.as<int>();
///     }
template <class T> class [[nodiscard]] Future {
public:
    struct promise_type;

    explicit Future(std::shared_ptr<detail::FutureState<T>> state) : state_(std::move(state)) {}

    /// One that is there already.
    static Future of(Result<T> result) {
        auto state = std::make_shared<detail::FutureState<T>>();
        state->complete(std::move(result));
        return Future(state);
    }

    Future(Future &&) noexcept = default;
    Future &operator=(Future &&) noexcept = default;

    /// Whether the result is there, and was not taken.
    bool ready() const { return state_ && state_->result; }

    /// Calls a function with the result, at once or in poll(). The future is used up.
    void then(std::function<void(Result<T>)> call) && {
        auto state = std::move(state_);
        if (!state) return call(detail::used_up());
        if (state->result) return call(*std::exchange(state->result, std::nullopt));
        state->then = std::move(call);
    }

    /// Polls until the result is there, and returns it; an error after `timeout`. Not to be called
    /// within a callback or a coroutine of the same client: await there. The future is used up.
    Result<T> wait(std::chrono::milliseconds timeout = std::chrono::seconds(30)) && {
        auto state = std::move(state_);
        if (!state) return detail::used_up();
        // A year, so that the sum is a time.
        timeout = std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24 * 365));
        auto until = std::chrono::steady_clock::now() + timeout;
        while (!state->result) {
            auto pump = state->pump.lock();
            if (!pump) return Error{PF_CODE_USAGE, "nothing completes this future: await it"};
            auto left = std::chrono::ceil<std::chrono::milliseconds>(
                until - std::chrono::steady_clock::now());
            if (left.count() <= 0) {
                return Error{PF_CODE_TIMED_OUT, "the answer did not come in time"};
            }
            auto polled = pump->pump(left);
            if (!state->result && !polled) return polled.error();
        }
        return *std::exchange(state->result, std::nullopt);
    }

    /// Lets it go on without anyone who waits for it.
    void detach() && { state_.reset(); }

    auto operator co_await() && { return detail::Awaiter<T>(std::move(state_)); }

private:
    std::shared_ptr<detail::FutureState<T>> state_;
};

namespace detail {

template <class T> struct PromiseBase {
    std::shared_ptr<FutureState<T>> state = std::make_shared<FutureState<T>>();

    Future<T> get_return_object() { return Future<T>(state); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    /// An exception becomes the future's error.
    void unhandled_exception() {
#if PLAYFIELD_EXCEPTIONS
        try {
            throw;
        } catch (const Exception &exception) {
            state->complete(exception.error());
        } catch (const std::exception &exception) {
            state->complete(Error{PF_CODE_FAILED, exception.what()});
        } catch (...) {
            state->complete(Error{PF_CODE_FAILED, "a coroutine threw something"});
        }
#endif
    }
};

} // namespace detail

template <class T> struct Future<T>::promise_type : detail::PromiseBase<T> {
    void return_value(Result<T> result) { this->state->complete(std::move(result)); }
};

template <> struct Future<void>::promise_type : detail::PromiseBase<void> {
    void return_void() { this->state->complete({}); }
};

} // namespace playfield
