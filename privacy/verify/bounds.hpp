#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "privacy/accountant.hpp"

namespace cudp::verify {

/// Cache of epsilons computed by the accountant, because a checker needs some of them several
/// times.
class Bounds {
 public:
  Bounds() = default;
  /// Makes a cache in which every call of epsilon() throws with this text.
  explicit Bounds(std::string refusal) : refusal_(std::move(refusal)) {}

  /// Returns the accountant's bound for these releases. Throws std::invalid_argument if there is
  /// none, on every call.
  const privacy::PrivacyBound& epsilon(const privacy::Composition& composition,
                                       const privacy::AccountantOptions& options, double delta);

  /// Progress callback: receives the fraction, 0 to 1, of the lines of metrics.jsonl that have been
  /// checked, the slowest part.
  std::function<void(double share)> on_rows;

 private:
  struct Answer {
    privacy::PrivacyBound bound;
    std::string refusal;  ///< why the accountant has no bound; empty if it has one
  };
  std::string refusal_;
  std::map<std::string, Answer> known_;
};

}  // namespace cudp::verify
