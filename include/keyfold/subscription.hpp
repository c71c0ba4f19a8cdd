// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/subscribers.hpp>

#include <memory>
#include <utility>

namespace keyfold {

/// Asks subscribe() to tell the present rows first, as one commit of inserts.
struct Replay {};
inline constexpr Replay replay{};

/// Keeps a callback subscribed; the callback is not called again once this is gone. It may outlive the table.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;

  template <class Row>
  Subscription(const std::shared_ptr<detail::Subscribers<Row>>& subscribers,
               const std::shared_ptr<detail::Subscriber<Row>>& subscriber)
      : registration_(std::make_unique<RegistrationIn<Row>>(subscribers, subscriber)) {}

  /// Ends the subscription now.
  void reset() noexcept { registration_.reset(); }

  /// Whether the callback may still be called: not after reset(), nor once the table is gone or was assigned
  /// to.
  [[nodiscard]] bool active() const noexcept { return registration_ != nullptr && registration_->alive(); }

 private:
  struct Registration {
    Registration() = default;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    virtual ~Registration() = default;
    [[nodiscard]] virtual bool alive() const noexcept = 0;
  };

  template <class Row>
  struct RegistrationIn final : Registration {
    RegistrationIn(std::weak_ptr<detail::Subscribers<Row>> all, std::weak_ptr<detail::Subscriber<Row>> one)
        : subscribers(std::move(all)), subscriber(std::move(one)) {}
    RegistrationIn(const RegistrationIn&) = delete;
    RegistrationIn& operator=(const RegistrationIn&) = delete;
    ~RegistrationIn() override {
      const auto all = subscribers.lock();
      const auto one = subscriber.lock();
      if (all != nullptr && one != nullptr) all->remove(*one);
    }
    [[nodiscard]] bool alive() const noexcept override { return !subscribers.expired(); }

    std::weak_ptr<detail::Subscribers<Row>> subscribers;
    std::weak_ptr<detail::Subscriber<Row>> subscriber;
  };

  std::unique_ptr<Registration> registration_;
};

}  // namespace keyfold
