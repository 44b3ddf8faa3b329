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

  /// Releases were charged to the ledger. They may be made as soon as this returns, so the observer
  /// must first store the ledger durably.
  virtual void charged(const privacy::Ledger&) {}
  /// The training starts. Nothing has been released yet.
  virtual void opens(const Training&) {}
  /// The privacy plan for the noisy number of examples exceeds the budget. The training ends: that
  /// number is its only release.
  virtual void refused(const Training&, const Error& /*reason*/) {}
  /// The number of examples is known, and the privacy plan is made and charged. Computing features
  /// and training steps come next.
  virtual void planned(const Training&) {}
  /// The observer should store a checkpoint: the training can resume from its current state.
  /// Releases that are charged for later steps have not been drawn.
  virtual void checkpoint_due(const Training&) {}
  /// The figures of held-out rows are about to be released. The observer must first note durably
  /// that they were: under another key they must not be released again.
  virtual void holdout_due(const Training&) {}
  /// A line of metrics was added. rows: all of them.
  virtual void measured(const std::vector<MetricsRow>& /*rows*/) {}
  /// Exact, private statistics of an epoch are available; only with --unsafe-diagnostics.
  virtual void diagnosed(std::uint64_t /*epoch*/, std::uint64_t /*step*/, const Diagnostics&) {}
  virtual void progressed(const Progress&) {}
  /// The training enters a phase (such as reading data), whose duration may be measured.
  virtual void enters(const char* /*phase*/) {}
  virtual void warned(const std::string&) {}
  /// Returns whether the training should stop here, with a last checkpoint. Called between steps.
  virtual bool interrupts() { return false; }
};

}  // namespace cudp
