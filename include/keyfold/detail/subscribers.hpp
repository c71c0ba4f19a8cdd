// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/fwd.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace keyfold::detail {

template <class Row>
struct Subscriber {
  explicit Subscriber(Version version) noexcept : since(version) {}
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;
  virtual ~Subscriber() = default;
  virtual void tell(const Commit<Row>& commit) = 0;

  Version since;       // it hears of later versions only
  bool active = true;  // false from the moment its token is gone
};

// Not a std::function, which takes no callback that can only be moved.
template <class Row, class Callback>
struct CallbackSubscriber final : Subscriber<Row> {
  CallbackSubscriber(Callback&& function, Version version)
      : Subscriber<Row>(version), callback(std::move(function)) {}
  void tell(const Commit<Row>& commit) override { static_cast<void>(std::invoke(callback, commit)); }

  Callback callback;
};

/// Who hears of commits. Shared by the table and the tokens, so that either may go first.
template <class Row>
class Subscribers {
 public:
  using Pointer = std::shared_ptr<Subscriber<Row>>;

  void add(Pointer subscriber) { list_.push_back(std::move(subscriber)); }

  // A subscriber may drop itself or others while being told: the list is only tidied up when nobody is.
  void remove(Subscriber<Row>& subscriber) noexcept {
    subscriber.active = false;
    if (!telling_) tidy();
  }

  /// While one lives, commits wait to be told.
  class Telling {
   public:
    explicit Telling(Subscribers& all) noexcept
        : subscribers_(all), within_another_(all.telling_.exchange(true)) {}
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    ~Telling() {
      subscribers_.telling_ = within_another_;
      if (!within_another_) subscribers_.tidy();
    }

   private:
    Subscribers& subscribers_;
    bool within_another_;
  };

  bool empty() const noexcept { return list_.empty(); }
  bool telling() const noexcept { return telling_; }

  /// Tells each subscriber of each commit in (told, latest()], in order, going on for commits that are made
  /// meanwhile. `commit_of(version)` makes the Commit. What subscribers throw is collected in `errors`.
  template <class CommitOf, class Latest>
  void tell(CommitOf commit_of, Latest latest, std::vector<std::exception_ptr>& errors) noexcept {
    const Telling telling(*this);
    while (told_ < latest()) {
      const Version version = ++told_;
      for (std::size_t i = 0; i < list_.size(); ++i) {
        const Pointer subscriber = list_[i];
        if (!subscriber->active || version <= subscriber->since) continue;
        try {
          subscriber->tell(commit_of(version));
        } catch (...) {
          keep(std::current_exception(), errors);
        }
      }
    }
  }

  /// The last version that everybody was told, or is being told now.
  Version told() const noexcept { return told_.load(std::memory_order_acquire); }
  void skip_to(Version version) noexcept { told_.store(version, std::memory_order_release); }

 private:
  // The commit is made and the others are still to be told: an error that there is no memory for is dropped.
  static void keep(std::exception_ptr error, std::vector<std::exception_ptr>& errors) noexcept {
    try {
      errors.push_back(std::move(error));
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

  // A callback may own the token of another one: it ends when the list is whole again.
  void tidy() noexcept {
    for (std::size_t i = 0; i < list_.size();) {
      if (list_[i]->active) {
        ++i;
      } else {
        const Pointer over = std::move(list_[i]);
        list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
        i = 0;  // its end may have changed the list
      }
    }
  }

  std::vector<Pointer> list_;
  // Readers of a shared table may ask for these while it tells.
  std::atomic<Version> told_{0};
  std::atomic<bool> telling_{false};
};

}  // namespace keyfold::detail
