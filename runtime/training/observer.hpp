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

  /// Called after releases were charged to the ledger. The releases may be made as soon as this
  /// returns, so the observer must store the ledger on disk before it returns.
  virtual void charged(const privacy::Ledger&) {}
  /// Called when the training starts, before any release.
  virtual void opens(const Training&) {}
  /// Called if, after the noisy number of examples was released, the privacy plan for it exceeds
  /// the budget. The training then ends; that number is its only release.
  virtual void refused(const Training&, const Error& /*reason*/) {}
  /// Called when the number of examples is known, and the privacy plan is made and charged.
  /// Computing features and training steps come next.
  virtual void planned(const Training&) {}
  /// Called when the observer should store a checkpoint of the training's current state. Noise for
  /// later steps has not been drawn yet, even if they are charged.
  virtual void checkpoint_due(const Training&) {}
  /// Called before the noisy test figures of held-out rows are released. The observer must first
  /// record on disk that they are released under the current key, because they must not be released
  /// again under another key.
  virtual void holdout_due(const Training&) {}
  /// Called when a line of metrics was added. rows: all lines so far.
  virtual void measured(const std::vector<MetricsRow>& /*rows*/) {}
  /// Called with exact, private statistics of an epoch; only with --unsafe-diagnostics.
  virtual void diagnosed(std::uint64_t /*epoch*/, std::uint64_t /*step*/, const Diagnostics&) {}
  virtual void progressed(const Progress&) {}
  /// Called when the training enters a phase, such as reading data. The observer may measure its
  /// duration.
  virtual void enters(const char* /*phase*/) {}
  virtual void warned(const std::string&) {}
  /// Returns whether the training should stop here, with a last checkpoint. Called between steps.
  virtual bool interrupts() { return false; }
};

}  // namespace cudp
