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

  /// Called after the cost of noisy values was added to the ledger, and before they are released.
  /// Their noise may be drawn as soon as this function returns, so the function must first store
  /// the ledger on disk.
  virtual void charged(const privacy::Ledger&) {}
  /// Called when the training starts, before anything is released.
  virtual void opens(const Training&) {}
  /// Called if the noisy number of examples has been released and a training on that many examples
  /// turns out to exceed the budget. The training then ends; it has released nothing else.
  virtual void refused(const Training&, const Error& /*reason*/) {}
  /// Called when the privacy plan (noise, number of steps) has been made for the known number of
  /// examples, and its cost has been charged. After this, the training computes features and makes
  /// its steps.
  virtual void planned(const Training&) {}
  /// Called when it is time to store a checkpoint of the training's current state. Noise for later
  /// steps has not been drawn yet, even if their cost is charged already.
  virtual void checkpoint_due(const Training&) {}
  /// Called before the noisy test metrics of held-out rows are released. Before it returns, the
  /// function must record on disk that they are released with the current random key, because they
  /// must not be released again with another key.
  virtual void holdout_due(const Training&) {}
  /// Called when a line of metrics was added. rows: all lines so far.
  virtual void measured(const std::vector<MetricsRow>& /*rows*/) {}
  /// Called after each epoch with exact, private statistics of the epoch, if the user set
  /// --unsafe-diagnostics.
  virtual void diagnosed(std::uint64_t /*epoch*/, std::uint64_t /*step*/, const Diagnostics&) {}
  virtual void progressed(const Progress&) {}
  /// Called when the training enters a phase, such as reading data, so that the observer can
  /// measure how long each phase takes.
  virtual void enters(const char* /*phase*/) {}
  virtual void warned(const std::string&) {}
  /// Returns whether the training should stop now. It then stores a last checkpoint. Called between
  /// steps.
  virtual bool interrupts() { return false; }
};

}  // namespace cudp
