// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/phase_fair_lock.hpp>
#include <keyfold/detail/table_readers.hpp>
#include <keyfold/error.hpp>
#include <keyfold/fwd.hpp>

#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace keyfold::detail {

/// Who may do what with a shared table, and when. Writers take turns; the one whose turn it is reads beside
/// the readers, and shuts them out while it changes something. What a thread holds already it need not wait
/// for.
class SharedAccess final : public TableReaders {
  /// What a thread holds, innermost first.
  struct Held {
    const SharedAccess* access;
    bool turn;  // to write; else to read
    const Held* outer;
  };
  static inline constinit thread_local const Held* innermost = nullptr;

 public:
  /// While one lives, nothing changes.
  class Reading {
   public:
    explicit Reading(SharedAccess& access) noexcept : held_{&access, false, innermost} {
      if (access.held() == nullptr) {
        access.lock_.lock_shared();
        locked_ = &access;
      }
      innermost = &held_;
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
      innermost = held_.outer;
      if (locked_ != nullptr) locked_->lock_.unlock_shared();
    }

   private:
    Held held_;
    SharedAccess* locked_ = nullptr;  // unless the thread holds it already
  };

  /// While one lives, nobody else writes. Throws ReentrantWrite where the thread reads.
  class Turn {
   public:
    explicit Turn(SharedAccess& access) : held_{&access, true, innermost} {
      if (const Held* held = access.held()) {
        if (!held->turn) throw ReentrantWrite();
        return;
      }
      lock_ = std::unique_lock(access.turn_);
      innermost = &held_;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (lock_) innermost = held_.outer;
    }

   private:
    Held held_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Keeps a version from expiring.
  class Pin {
   public:
    Pin(std::shared_ptr<SharedAccess> access, Version version) : access_(std::move(access)) {
      const std::lock_guard guard(access_->pins_mutex_);
      at_ = access_->pins_.insert(version);
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      const std::lock_guard guard(access_->pins_mutex_);
      access_->pins_.erase(at_);
    }

    SharedAccess& access() const noexcept { return *access_; }

   private:
    std::shared_ptr<SharedAccess> access_;
    std::multiset<Version>::iterator at_;
  };

  void shut_out() noexcept override {
    if (shut_out_++ == 0) lock_.lock();
  }
  void let_in() noexcept override {
    if (--shut_out_ == 0) lock_.unlock();
  }

  void read(FunctionRef<void()> reading) override {
    const Reading scope(*this);
    reading();
  }

  Version oldest_read() const override {
    const std::lock_guard guard(pins_mutex_);
    return pins_.empty() ? std::numeric_limits<Version>::max() : *pins_.begin();
  }

 private:
  const Held* held() const noexcept {
    const Held* held = innermost;
    while (held != nullptr && held->access != this) held = held->outer;
    return held;
  }

  PhaseFairLock lock_;
  std::mutex turn_;
  int shut_out_ = 0;  // how often, by who has the turn
  mutable std::mutex pins_mutex_;
  std::multiset<Version> pins_;
};

}  // namespace keyfold::detail
