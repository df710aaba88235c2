// Futures: answers that come in poll(). They can be awaited, waited for, or given a callback.

#pragma once

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

template <class T> struct Awaiter {
    std::shared_ptr<FutureState<T>> state;

    bool await_ready() const { return state->result.has_value(); }
    template <class Promise> void await_suspend(std::coroutine_handle<Promise> coroutine) {
        // Who waits for the coroutine polls what it waits for.
        if constexpr (requires { coroutine.promise().state->pump = state->pump; }) {
            coroutine.promise().state->pump = state->pump;
        }
        state->waiter = coroutine;
    }
    Result<T> await_resume() { return *std::exchange(state->result, std::nullopt); }
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

    bool ready() const { return state_->result.has_value(); }

    /// Calls a function with the result, at once or in poll(). The future is used up.
    void then(std::function<void(Result<T>)> call) && {
        if (ready()) return call(take());
        state_->then = std::move(call);
    }

    /// Polls until the result is there, and returns it; an error after `timeout`. Not to be called
    /// within a callback or a coroutine of the same client: await there.
    Result<T> wait(std::chrono::milliseconds timeout = std::chrono::seconds(30)) && {
        auto until = std::chrono::steady_clock::now() + timeout;
        while (!ready()) {
            auto pump = state_->pump.lock();
            if (!pump) return Error{PF_CODE_USAGE, "nothing completes this future: await it"};
            auto left = std::chrono::ceil<std::chrono::milliseconds>(
                until - std::chrono::steady_clock::now());
            if (left.count() <= 0) {
                return Error{PF_CODE_TIMED_OUT, "the answer did not come in time"};
            }
            auto polled = pump->pump(left);
            if (!ready() && !polled) return polled.error();
        }
        return take();
    }

    /// Lets it go on without anyone who waits for it.
    void detach() && { state_.reset(); }

    auto operator co_await() && { return detail::Awaiter<T>{state_}; }

private:
    Result<T> take() { return *std::exchange(state_->result, std::nullopt); }

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
