#pragma once
#include <chrono>
#include <thread>

namespace cudp {

/// Waits until the condition holds, for two minutes at most, since the machine may be loaded.
/// Returns whether it holds.
template <class Condition>
bool wait_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
}

}  // namespace cudp
