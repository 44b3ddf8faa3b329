#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/run/run.hpp"

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a call of the method should take, so that progress moves and signals are heard; and how
/// much work a crash may lose.
constexpr double kChunkSeconds = 0.25;
constexpr double kCheckpointSeconds = 20.0;

/// What of the settings matters where a model is only asked for its answers.
EngineSettings forward_settings(const TrainConfig& config) {
  EngineSettings s;
  s.micro_batch = static_cast<int>(config.micro_batch);
  s.precision = config.precision;
  s.threads = static_cast<int>(config.threads);
  return s;
}

class Loop {
 public:
  Loop(Run& run, Reporter& reporter)
      : run_(run),
        config_(run.experiment.config),
        reporter_(reporter),
        method_(*run.method),
        steps_per_epoch_(method_.steps_per_epoch()) {}

  void train() {
    while (run_.step < run_.last_step) {
      const std::uint64_t until =
          timed([&] { return method_.authorise(*run_.budget, run_.step, next_checkpoint()); });
      if (until == run_.step) stop_at_budget();
      // It knows of what was charged, before any of that is drawn: a ledger of before is told
      // apart.
      if (run_.step < run_.last_step) run_.save_checkpoint();
      while (run_.step < until && run_.step < run_.last_step && !interrupted_.requested())
        take_steps(until);
      if (interrupted_.requested() && run_.step < run_.last_step) {
        run_.save_checkpoint();
        interrupt();
      }
    }
    if (run_.step == 0) throw BudgetError("the budget does not allow a single step");
    evaluate_once();
  }

 private:
  /// Calls `body`, whose time is that of training.
  template <class Body>
  std::uint64_t timed(const Body& body) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t result = body();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    run_.seconds += seconds;
    seconds_ += seconds;
    return result;
  }

  bool is_open_ended() const { return method_.steps() == Method::kOpenEnded; }

  double steps_per_second() const {
    return seconds_ > 0.0 ? static_cast<double>(steps_taken_) / seconds_ : 0.0;
  }

  /// Steps that take about this long, at least one; before the speed is known, `first`.
  std::uint64_t steps_in(double seconds, std::uint64_t first) const {
    if (steps_taken_ == 0) return first;
    return static_cast<std::uint64_t>(std::clamp(seconds * steps_per_second(), 1.0, 1e9));
  }

  std::uint64_t next_checkpoint() const {
    const auto every = static_cast<std::uint64_t>(config_.checkpoint_every);
    const std::uint64_t steps =
        every > 0 ? every - run_.step % every
                  : steps_in(kCheckpointSeconds, std::min<std::uint64_t>(steps_per_epoch_, 32));
    return std::min(run_.step + steps, run_.last_step);
  }

  void take_steps(std::uint64_t until) {
    const std::uint64_t epoch_end = (run_.step / steps_per_epoch_ + 1) * steps_per_epoch_;
    const std::uint64_t last = std::min({until, epoch_end, run_.step + steps_in(kChunkSeconds, 1)});
    const std::uint64_t done = timed([&] { return method_.train(run_.step, last); });
    steps_taken_ += done - run_.step;
    run_.step = done;
    if (done < last) return stop_at_budget();
    if (last == epoch_end) end_epoch(last / steps_per_epoch_);
    if (run_.step == run_.last_step) evaluate_once();
    show_progress();
  }

  /// A method that asks as it goes was refused.
  void stop_at_budget() {
    if (!is_open_ended() && run_.step > 0)
      reporter_.warn(
          fmt::format("the budget is spent at step {} of {}", run_.step, run_.last_step));
    run_.last_step = run_.step;
  }

  void end_epoch(std::uint64_t epoch) {
    if (config_.unsafe_diagnostics) report_diagnostics(epoch);
    const auto every = static_cast<std::uint64_t>(config_.eval_every);
    if (every > 0 && epoch % every == 0) evaluate();
  }

  double epoch() const {
    return static_cast<double>(run_.step) / static_cast<double>(steps_per_epoch_);
  }

  void evaluate_once() {
    if (run_.metrics.empty() || run_.metrics.back().step != run_.step) evaluate();
  }

  void evaluate() {
    // On the way a faster, slightly looser bound will do; the last one is the certificate's.
    const bool last = run_.step == run_.last_step;
    MetricsRow row{.epoch = epoch(),
                   .step = run_.step,
                   .epsilon = method_.spent(run_.budget->ledger(), run_.step, last),
                   .learning_rate = method_.learning_rate(run_.step)};
    const Experiment& e = run_.experiment;
    if (e.data.test.size() > 0) {
      if (!predictor_) predictor_.emplace(e.backend, e.network, forward_settings(config_));
      row.test = measure(predictor_->predict(method_.parameters(), e.data.test));
    }
    run_.metrics.push_back(row);
    run_.outputs().write_metrics(run_.metrics);
  }

  void show_progress() {
    const double rate = steps_per_second();
    const double steps =
        is_open_ended() ? method_.expected_steps(run_.step) : static_cast<double>(run_.last_step);
    Progress p;
    p.epoch = epoch();
    p.epochs = steps / static_cast<double>(steps_per_epoch_);
    p.step = run_.step;
    p.steps = static_cast<std::uint64_t>(steps);
    if (!run_.metrics.empty() && std::isfinite(run_.metrics.back().epsilon))
      p.epsilon = run_.metrics.back().epsilon;
    p.examples_per_second = rate * method_.examples_per_step();
    p.seconds_left = rate > 0.0 ? (steps - static_cast<double>(run_.step)) / rate : 0.0;
    if (!run_.metrics.empty() && run_.experiment.data.test_is_public)
      p.test_accuracy = run_.metrics.back().test.accuracy();
    reporter_.progress(p);
  }

  /// Statistics of private data; the certificate says that they were looked at.
  void report_diagnostics(std::uint64_t epoch) {
    const Diagnostics d = method_.diagnostics();
    const double n = d.examples > 0 ? static_cast<double>(d.examples) : 1.0;
    const nlohmann::ordered_json j{{"epoch", epoch},
                                   {"step", run_.step},
                                   {"training_loss", d.loss / n},
                                   {"gradient_norm", d.norm / n},
                                   {"clipped_share", static_cast<double>(d.clipped) / n},
                                   {"examples", d.examples},
                                   {"non_finite", d.non_finite}};
    append_line(run_.folder.diagnostics(), j.dump());
    reporter_.info("PRIVATE " + j.dump());
  }

  [[noreturn]] void interrupt() {
    throw Error(fmt::format("interrupted at step {}{}; continue with: cudp train --resume {}",
                            run_.step, is_open_ended() ? "" : fmt::format(" of {}", run_.last_step),
                            run_.folder.root().string()));
  }

  Run& run_;
  const TrainConfig& config_;
  Reporter& reporter_;
  Method& method_;
  std::uint64_t steps_per_epoch_;
  InterruptWatch interrupted_;
  std::optional<Predictor> predictor_;
  double seconds_ = 0.0;  ///< of this process
  std::uint64_t steps_taken_ = 0;
};

}  // namespace

RunResult train(Run& run, Reporter& reporter) {
  Loop(run, reporter).train();
  return finish(run, reporter);
}

}  // namespace cudp
