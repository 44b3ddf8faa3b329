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

/// Interface that receives the events of a training. The default of each function does nothing.
class TrainingObserver {
 public:
  TrainingObserver() = default;
  TrainingObserver(const TrainingObserver&) = delete;
  TrainingObserver& operator=(const TrainingObserver&) = delete;
  virtual ~TrainingObserver() = default;

  /// Releases are charged. They may be made as soon as this returns, so the observer must store the
  /// ledger before.
  virtual void charged(const privacy::Ledger&) {}
  /// The training begins; nothing has been released yet.
  virtual void opens(const Training&) {}
  /// No plan fits the noisy number of examples. That number has been released, and nothing else
  /// will be.
  virtual void refused(const Training&, const Error& /*reason*/) {}
  /// The size is known, and the plan is made and charged. Features and steps come next.
  virtual void planned(const Training&) {}
  /// The training can be resumed from its current state. Releases charged for later steps have not
  /// been drawn.
  virtual void checkpoint_due(const Training&) {}
  /// Called just before the figures of held-out rows are released, which may happen under one key
  /// only.
  virtual void holdout_due(const Training&) {}
  /// A row of metrics was added; `rows` has all of them.
  virtual void measured(const std::vector<MetricsRow>& /*rows*/) {}
  /// Private statistics of an epoch are available; only with --unsafe-diagnostics.
  virtual void diagnosed(std::uint64_t /*epoch*/, std::uint64_t /*step*/, const Diagnostics&) {}
  virtual void progressed(const Progress&) {}
  /// The training enters a phase, whose duration may be measured.
  virtual void enters(const char* /*phase*/) {}
  virtual void warned(const std::string&) {}
  /// Returns whether to stop here, with a last checkpoint. Called between steps.
  virtual bool interrupts() { return false; }
};

}  // namespace cudp
