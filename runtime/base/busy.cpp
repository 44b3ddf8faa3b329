#include "runtime/base/busy.hpp"

#include <cstdio>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

namespace cudp {

Busy::Busy(std::string what, Shown where, std::chrono::milliseconds patience)
    : what_(std::move(what)), patience_(patience) {
  if (where == Shown::never) return;
  if (where == Shown::on_terminal && ::isatty(STDERR_FILENO) != 1) return;
  thread_ = std::thread([this] { show(); });
}

Busy::~Busy() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Busy::next(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  share_ = 0.0;
}

std::string Busy::line() {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::lock_guard lock(mutex_);
  const double share = share_;
  return fmt::format("{}: {}{:.0f} s", what_,
                     share > 0.0 ? fmt::format("{:.0f} % after ", 100.0 * share) : "", seconds);
}

bool Busy::is_over(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [this] { return over_; });
}

void Busy::show() {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  bool shown = false;
  // The time between log lines grows.
  for (std::chrono::milliseconds wait = patience_; !is_over(wait);
       wait = terminal ? std::chrono::milliseconds(500) : 2 * wait) {
    std::fprintf(stderr, terminal ? "\r%s\033[K" : "%s\n", line().c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (shown && terminal) std::fputs("\r\033[K", stderr);
}

}  // namespace cudp
