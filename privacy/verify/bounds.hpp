#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "privacy/accountant.hpp"
#include "privacy/certificate/certificate.hpp"

namespace cudp::verify {

/// Computes bounds on epsilon with the accountant, and caches them, because a checker needs some of
/// them several times.
class Bounds {
 public:
  Bounds() = default;
  /// Makes a cache that computes nothing: every call of epsilon() or selection() throws
  /// std::invalid_argument with the text `refusal`.
  explicit Bounds(std::string refusal) : refusal_(std::move(refusal)) {}

  /// Returns the accountant's bound on epsilon at delta for these releases. Throws
  /// std::invalid_argument if the accountant finds none; repeated calls with these arguments throw
  /// again, without another computation. composition: the releases. options: the accountant's.
  const privacy::PrivacyBound& epsilon(const privacy::Composition& composition,
                                       const privacy::AccountantOptions& options, double delta);

  /// Returns a bound on epsilon at delta for the selection that `tuning` describes
  /// (privacy::epsilon_of). Throws std::invalid_argument if there is none, also on repeated calls.
  /// group: number of examples by which neighbours differ.
  const privacy::SelectionEpsilon& selection(const privacy::Certificate::Tuning& tuning,
                                             double delta, std::uint64_t group);

  /// Reports the progress of check_released(): called with the fraction (0 to 1) of the lines of
  /// metrics.jsonl that have been checked, which takes most of the time.
  std::function<void(double share)> on_rows;

 private:
  /// A bound in the cache, or the reason why the accountant has none. Bound: type of the bound.
  template <class Bound>
  struct Answer {
    Bound bound;
    std::string refusal;  ///< why the accountant has no bound; empty if it has one
  };
  template <class Bound>
  using Answers = std::map<std::string, Answer<Bound>>;
  /// Returns the bound that the cache `known` has for this key. If there is none, calls compute()
  /// and caches its result. Throws std::invalid_argument if compute() throws, or threw at an
  /// earlier call.
  template <class Bound, class Compute>
  const Bound& answer(Answers<Bound>& known, const std::string& key, const Compute& compute);

  std::string refusal_;
  Answers<privacy::PrivacyBound> known_;
  Answers<privacy::SelectionEpsilon> selections_;
};

}  // namespace cudp::verify
