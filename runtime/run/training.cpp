#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <spdlog/fmt/fmt.h>

#include "privacy/filter.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/schedule.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/run.hpp"

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a call of the engine should take, so that progress moves and signals are heard; and how
/// much work a crash may lose.
constexpr double kChunkSeconds = 0.25;
constexpr double kCheckpointSeconds = 20.0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Loop {
 public:
  Loop(Run& run, Reporter& reporter)
      : run_(run),
        config_(run.experiment.config),
        reporter_(reporter),
        schedule_(config_, run.plan, run.steps_per_epoch()),
        method_(run.make_method()),
        seconds_before_(run.seconds) {}

  void train() {
    while (run_.step < run_.last_step) {
      if (!prepare()) break;
      const std::uint64_t until = std::min(next_checkpoint(), method_->prepared_until(run_.step));
      if (!authorise(until)) break;
      while (run_.step < until && !interrupted_.requested()) take_steps(until);
      run_.seconds = seconds_before_ + seconds_since(start_);
      if (run_.step < run_.last_step) save_checkpoint(run_);
      if (interrupted_.requested() && run_.step < run_.last_step) stop();
    }
    if (run_.step == 0) throw BudgetError("the budget does not allow a single step");
    if (run_.step < run_.last_step) {
      reporter_.warn(
          fmt::format("the budget is spent at step {} of {}", run_.step, run_.last_step));
      run_.last_step = run_.step;
      if (run_.metrics.empty() || run_.metrics.back().step != run_.step) evaluate();
    }
  }

  double examples_per_second() const {
    return engine_seconds_ > 0.0
               ? static_cast<double>(steps_taken_) * run_.plan.expected_batch / engine_seconds_
               : 0.0;
  }

 private:
  double steps_per_second() const {
    return engine_seconds_ > 0.0 ? static_cast<double>(steps_taken_) / engine_seconds_ : 0.0;
  }

  /// Steps that take about this long, at least one; before the speed is known, `first`.
  std::uint64_t steps_in(double seconds, std::uint64_t first) const {
    if (steps_taken_ == 0) return first;
    return static_cast<std::uint64_t>(std::clamp(seconds * steps_per_second(), 1.0, 1e9));
  }

  std::uint64_t next_checkpoint() const {
    const auto every = static_cast<std::uint64_t>(config_.checkpoint_every);
    const std::uint64_t steps =
        every > 0
            ? every - run_.step % every
            : steps_in(kCheckpointSeconds, std::min<std::uint64_t>(run_.steps_per_epoch(), 32));
    return std::min(run_.step + steps, run_.last_step);
  }

  /// The write-ahead of the ledger: durable before the first of these releases draws its noise.
  /// False where a filter refuses.
  bool charge(std::uint64_t place, const std::vector<privacy::Phase>& releases) {
    std::optional<privacy::Filter> filter;
    if (run_.ledger.budget()) filter.emplace(run_.ledger);
    for (const privacy::Phase& release : releases) {
      const std::uint64_t end = place + release.steps;
      if (!filter)
        run_.ledger.authorise(place, end, release.q, release.sigma);
      else if (!filter->authorise(place, end, privacy::step_of(release).mechanism))
        return false;
      place = end;
    }
    if (filter) run_.ledger = filter->ledger();
    save_ledger(run_);
    return true;
  }

  bool authorise(std::uint64_t until) {
    return charge(method_->place(run_.step), method_->phases(run_.step, until));
  }

  /// What the method releases besides its steps is in a checkpoint before the steps that rest on
  /// it.
  bool prepare() {
    const DpisEpoch before = run_.dpis;
    const bool ready = method_->prepare(
        *run_.engine, run_.step,
        {.authorise = [&](std::uint64_t begin, std::uint64_t end, privacy::Phase release) {
          release.steps = end - begin;
          return charge(begin, {release});
        }});
    if (ready && !(run_.dpis == before)) save_checkpoint(run_);
    return ready;
  }

  void take_steps(std::uint64_t until) {
    const std::uint64_t epoch_end =
        (run_.step / run_.steps_per_epoch() + 1) * run_.steps_per_epoch();
    const std::uint64_t last = std::min({until, epoch_end, run_.step + steps_in(kChunkSeconds, 1)});
    const Clock::time_point start = Clock::now();
    method_->run(*run_.engine, run_.step, last);
    engine_seconds_ += seconds_since(start);
    steps_taken_ += last - run_.step;
    run_.step = last;

    if (last == epoch_end) end_epoch(last / run_.steps_per_epoch());
    if (last == run_.last_step && (run_.metrics.empty() || run_.metrics.back().step != last))
      evaluate();
    show_progress();
  }

  void end_epoch(std::uint64_t epoch) {
    if (config_.unsafe_diagnostics) tell_diagnostics(epoch);
    const auto every = static_cast<std::uint64_t>(config_.eval_every);
    if (every > 0 && epoch % every == 0) evaluate();
  }

  double epoch() const {
    return static_cast<double>(run_.step) / static_cast<double>(run_.steps_per_epoch());
  }

  /// Epsilon of the steps done: the ledger less what it has authorised ahead.
  double epsilon_so_far() const {
    std::vector<privacy::Phase> phases = run_.ledger.phases();
    const std::uint64_t done = method_->place(run_.step);
    const std::uint64_t until = run_.ledger.authorised_until();
    std::uint64_t ahead = until > done ? until - done : 0;
    for (auto phase = phases.rbegin(); ahead > 0; ++phase) {
      const std::uint64_t undone = std::min(ahead, phase->steps);
      phase->steps -= undone;
      ahead -= undone;
    }
    // On the way a faster, slightly looser bound will do; the last one is the certificate's.
    const bool last = run_.step == run_.last_step;
    return guarantee(run_.plan, phases, last ? 1.0 : 10.0).epsilon;
  }

  void evaluate() {
    MetricsRow row{.epoch = epoch(),
                   .step = run_.step,
                   .epsilon = epsilon_so_far(),
                   .learning_rate = schedule_.learning_rate(run_.step - 1)};
    measure(*run_.engine, run_.experiment.data.test, config_.ema > 0.0, row);
    run_.metrics.push_back(row);
    write_metrics(run_.folder, run_.experiment.data, run_.metrics);
  }

  void show_progress() {
    const double rate = steps_per_second();
    Progress p;
    p.epoch = epoch();
    p.epochs = static_cast<double>(run_.last_step) / static_cast<double>(run_.steps_per_epoch());
    p.step = run_.step;
    p.steps = run_.last_step;
    if (!run_.metrics.empty()) p.epsilon = run_.metrics.back().epsilon;
    p.examples_per_second = examples_per_second();
    p.seconds_left = rate > 0.0 ? static_cast<double>(run_.last_step - run_.step) / rate : 0.0;
    if (!run_.metrics.empty() && run_.experiment.data.test_is_public)
      p.test_accuracy = run_.metrics.back().test_accuracy;
    reporter_.progress(p);
  }

  /// Statistics of private data; the certificate says that they were looked at.
  void tell_diagnostics(std::uint64_t epoch) {
    const Diagnostics d = run_.engine->diagnostics();
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

  [[noreturn]] void stop() {
    throw Error(fmt::format("interrupted at step {} of {}; continue with: cudp train --resume {}",
                            run_.step, run_.last_step, run_.folder.root().string()));
  }

  Run& run_;
  const TrainConfig& config_;
  Reporter& reporter_;
  Schedule schedule_;
  std::unique_ptr<Method> method_;
  InterruptWatch interrupted_;
  Clock::time_point start_ = Clock::now();
  double seconds_before_;
  double engine_seconds_ = 0.0;
  std::uint64_t steps_taken_ = 0;
};

}  // namespace

RunResult train(Run& run, Reporter& reporter) {
  Loop loop(run, reporter);
  loop.train();
  return finish(run, loop.examples_per_second(), reporter);
}

}  // namespace cudp
