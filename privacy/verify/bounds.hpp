#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "privacy/accountant.hpp"

namespace cudp::verify {

/// Bounds of compositions, each worked out once: a checker asks for some of them several times.
class Bounds {
 public:
  Bounds() = default;
  /// Works out nothing, and says why.
  explicit Bounds(std::string refusal) : refusal_(std::move(refusal)) {}

  /// Throws std::invalid_argument where there is none, again each time.
  const privacy::PrivacyBound& epsilon(const privacy::Composition& composition,
                                       const privacy::AccountantOptions& options, double delta);

  /// Called with the share, 0 to 1, of the rows of metrics.jsonl that have been checked. Checking
  /// them is the slowest part.
  std::function<void(double share)> on_rows;

 private:
  struct Answer {
    privacy::PrivacyBound bound;
    std::string refusal;  ///< in words; empty where there is a bound
  };
  std::string refusal_;
  std::map<std::string, Answer> known_;
};

}  // namespace cudp::verify
