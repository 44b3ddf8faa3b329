#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/ledger.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

class Training;

/// Hears what happens in a training. What each call does not need is left as it is: nothing.
class TrainingObserver {
 public:
  TrainingObserver() = default;
  TrainingObserver(const TrainingObserver&) = delete;
  TrainingObserver& operator=(const TrainingObserver&) = delete;
  virtual ~TrainingObserver() = default;

  /// Releases are charged. They may be made once this returns, so what is to be durable must be.
  virtual void charged(const privacy::Ledger&) {}
  /// Nothing has been released yet.
  virtual void opens(const Training&) {}
  /// No plan fits the noisy number of examples, which has been released, and nothing else will be.
  virtual void refused(const Training&, const Error& /*reason*/) {}
  /// The plan is made and charged, the size known; features and steps come next.
  virtual void planned(const Training&) {}
  /// The training can be taken up again where it is now. Of what is charged, nothing beyond this
  /// step has been drawn.
  virtual void checkpoint_due(const Training&) {}
  /// The figures of held-out rows are about to be released, which may happen under one key only.
  virtual void holdout_due(const Training&) {}
  /// A row was added.
  virtual void measured(const std::vector<MetricsRow>& /*rows*/) {}
  /// Private statistics of an epoch, only with --unsafe-diagnostics.
  virtual void diagnosed(std::uint64_t /*epoch*/, std::uint64_t /*step*/, const Diagnostics&) {}
  virtual void progressed(const Progress&) {}
  virtual void warned(const std::string&) {}
  /// Asked between steps: whether to stop here, with a last checkpoint.
  virtual bool interrupts() { return false; }
};

}  // namespace cudp
