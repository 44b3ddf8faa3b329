#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "privacy/accountant.hpp"

namespace cudp::verify {

/// Cache of epsilon bounds. Each bound is computed once, because a checker needs some of them
/// several times.
class Bounds {
 public:
  Bounds() = default;
  /// Computes nothing: every call of epsilon() throws with this text.
  explicit Bounds(std::string refusal) : refusal_(std::move(refusal)) {}

  /// Throws std::invalid_argument if there is no bound, on every call.
  const privacy::PrivacyBound& epsilon(const privacy::Composition& composition,
                                       const privacy::AccountantOptions& options, double delta);

  /// Called with the share, 0 to 1, of the rows of metrics.jsonl that have been checked. Checking
  /// them is the slowest part.
  std::function<void(double share)> on_rows;

 private:
  struct Answer {
    privacy::PrivacyBound bound;
    std::string refusal;  ///< why there is no bound; empty if there is one
  };
  std::string refusal_;
  std::map<std::string, Answer> known_;
};

}  // namespace cudp::verify
