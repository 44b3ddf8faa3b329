#include <algorithm>
#include <chrono>

#include <spdlog/fmt/fmt.h>

#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/run/guarded_certificate.hpp"
#include "runtime/run/guarded_run.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/resume.hpp"

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCheckpointSeconds = 20.0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class GuardedLoop {
 public:
  GuardedLoop(GuardedRun& run, Reporter& reporter)
      : run_(run),
        config_(run.experiment.config),
        reporter_(reporter),
        method_(run.settings, *run.engine, run.size.value, config_.rng, run.key->key(),
                [this](std::uint64_t number, const privacy::Mechanism& release) {
                  return ask(number, release);
                }),
        seconds_before_(run.seconds) {}

  void train() {
    DpAgdState& s = run_.state;
    while (method_.iterate(s)) {
      if (config_.eval_every > 0 && s.iterations % every() == 0) evaluate();
      show_progress();
      run_.seconds = seconds_before_ + seconds_since(start_);
      if (checkpoint_due()) save();
      if (interrupted_.requested()) {
        save();
        throw Error(
            fmt::format("interrupted at iteration {}; continue with: cudp train --resume {}",
                        s.iterations, run_.folder.root().string()));
      }
    }
    if (run_.metrics.empty() || run_.metrics.back().step != s.iterations) evaluate();
    run_.seconds = seconds_before_ + seconds_since(start_);
  }

 private:
  /// The write-ahead of the ledger: durable before the release draws its noise.
  bool ask(std::uint64_t number, const privacy::Mechanism& release) {
    const bool repeated = number < run_.filter.ledger().authorised_until();
    if (!run_.filter.authorise(number, number + 1, release)) return false;
    if (!repeated) write_ledger(run_.folder, run_.filter.ledger(), *run_.seal);
    return true;
  }

  std::uint64_t every() const { return static_cast<std::uint64_t>(config_.eval_every); }

  bool checkpoint_due() const {
    const auto steps = static_cast<std::uint64_t>(config_.checkpoint_every);
    return steps > 0 ? run_.state.iterations % steps == 0
                     : seconds_since(saved_) > kCheckpointSeconds;
  }

  void save() {
    save_checkpoint(run_.folder.checkpoints(), checkpoint_of(run_), *run_.seal);
    saved_ = Clock::now();
  }

  double epsilon_so_far() const {
    return std::min(run_.filter.budget().epsilon,
                    privacy::epsilon_from_zcdp(run_.state.rho, run_.filter.budget().delta));
  }

  void evaluate() {
    TrainState weights;
    weights.parameters = run_.state.w;
    run_.evaluator->set_state(weights);
    const std::vector<double>& chosen = run_.state.chosen;
    MetricsRow row{.epoch = static_cast<double>(run_.state.iterations),
                   .step = run_.state.iterations,
                   .epsilon = epsilon_so_far(),
                   .learning_rate = chosen.empty() ? 0.0 : chosen.back()};
    measure(*run_.evaluator, run_.experiment.data.test, false, row);
    run_.metrics.push_back(row);
    write_metrics(run_.folder, run_.experiment.data, run_.metrics);
  }

  void show_progress() {
    const double spent = std::max(run_.state.rho / run_.filter.limit(), 1e-9);
    const auto done = static_cast<double>(run_.state.iterations);
    const double seconds = seconds_since(start_);
    Progress p;
    p.epoch = done;
    p.epochs = std::max(done, done / spent);
    p.step = run_.state.iterations;
    p.steps = static_cast<std::uint64_t>(p.epochs);
    p.epsilon = epsilon_so_far();
    p.examples_per_second = seconds > 0.0 ? done * run_.size.value / seconds : 0.0;
    p.seconds_left = seconds * (1.0 / spent - 1.0);
    if (!run_.metrics.empty() && run_.experiment.data.test_is_public)
      p.test_accuracy = run_.metrics.back().test_accuracy;
    reporter_.progress(p);
  }

  GuardedRun& run_;
  const TrainConfig& config_;
  Reporter& reporter_;
  DpAgd method_;
  InterruptWatch interrupted_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point saved_ = start_;
  double seconds_before_;
};

}  // namespace

RunResult train(GuardedRun& run, Reporter& reporter) {
  GuardedLoop(run, reporter).train();
  const Experiment& e = run.experiment;
  CertificateFacts facts;
  facts.config = e.config;
  facts.plan.size_noise = run.size.noise;
  facts.ledger = run.filter.ledger();
  facts.dataset = e.data.name;
  facts.backend = e.backend.name;
  facts.test_set = test_set_text(e.data);
  facts.training_size = run.size.value;
  facts.unsafe = unsafe_flags(e);
  const auto certificate =
      make_guarded_certificate(facts, run.filter, run.settings, e.network, run.state.iterations);
  write_release(run.folder, e, run.state.w, run.metrics, certificate, reporter);

  RunResult result;
  result["epsilon"] = certificate["epsilon"];
  result["delta"] = certificate["delta"];
  result["steps"] = run.state.iterations;
  result["releases"] = run.state.releases;
  result["seconds"] = run.seconds;
  // By the size that was paid for: with the real one, seconds and steps would tell it.
  result["examples_per_second"] =
      run.seconds > 0.0 ? static_cast<double>(run.state.iterations) * run.size.value / run.seconds
                        : 0.0;
  return complete(run.folder, e, run.metrics.back(), certificate, std::move(result));
}

}  // namespace cudp
