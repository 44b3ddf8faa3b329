#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "privacy/transcript/records.hpp"
#include "privacy/verify/findings.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks the numbers of an update other than gradients (learning rate, decay, bias corrections,
/// ...), by rule `update`. Each is the same at every step, or a function of the step's index, the
/// settings and earlier releases.
class StepNumbers {
 public:
  /// Requires that all arguments outlive this object.
  StepNumbers(const StatedNumbers& certificate, const Settings& settings,
              std::uint64_t steps_per_epoch, Findings& findings)
      : certificate_(certificate),
        settings_(settings),
        steps_per_epoch_(steps_per_epoch),
        findings_(findings) {}

  /// Checks the numbers of one update. released: the release of this step, or null. After a resume
  /// from a checkpoint, repeated steps are passed again.
  void check(const transcript::Update& u, const transcript::Release* released);

 private:
  void check_optimizer(const transcript::Update& u);
  void check_average(const transcript::Update& u, double t);
  void check_rate(const transcript::Update& u, const transcript::Release* released);
  std::optional<double> grown(const transcript::Update& u, const transcript::Release* released);

  const StatedNumbers& certificate_;
  const Settings& settings_;
  std::uint64_t steps_per_epoch_;
  Findings& findings_;
  std::optional<transcript::Update> first_update_;
  std::optional<double> ema_;  ///< decay of the weight average after the first steps
  /// Adaptive learning rate: b^2, by which the squared rate is divided, by number of steps done.
  std::map<std::uint64_t, double> steps_b2_;
};

}  // namespace cudp::verify
