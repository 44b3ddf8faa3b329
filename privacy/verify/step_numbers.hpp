#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "privacy/transcript/records.hpp"
#include "privacy/verify/findings.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks the scalars of parameter updates: learning rate, momentum, decay, bias corrections, ...
/// Each must be the same at every step, or follow from the step's index, the settings and earlier
/// releases. Adds a finding of rule `update` for each difference.
class StepNumbers {
 public:
  /// Prepares the checks of a run's updates, which add differences to `findings`. All arguments
  /// must outlive this object, which keeps references to them.
  StepNumbers(const StatedNumbers& certificate, const Settings& settings,
              std::uint64_t steps_per_epoch, Findings& findings)
      : certificate_(certificate),
        settings_(settings),
        steps_per_epoch_(steps_per_epoch),
        findings_(findings) {}

  /// Checks the scalars of one update. Call it for every update of a run, in order; steps that are
  /// repeated after a resume from a checkpoint are checked again. released: this step's noisy
  /// gradient sum, or null if the transcript has none.
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
  std::optional<double> ema_;  ///< decay rate of the weight average, once its warm-up has ended
  /// For the adaptive step size (method adp-sgd), which is learning rate / b: maps a number of
  /// steps done to the value of b^2 after them. b^2 grows at every step, by at least the setting
  /// adaptive-least and in proportion to the squared norm of the noisy gradient.
  std::map<std::uint64_t, double> steps_b2_;
};

}  // namespace cudp::verify
