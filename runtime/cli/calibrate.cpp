#include "privacy/calibrate.hpp"

#include "privacy/text/number.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

struct CalibrateFlags : AccountantFlags {
  std::string solve = "sigma";
};

/// Computes the value of the flag that --solve names (e.g. the noise) from the values of the other
/// flags, and stores it in `o`.
void solve(CalibrateFlags& o) {
  const std::string with = "--solve " + o.solve;
  const bool fixed = o.sampling == "fixed";
  if (allocates(o) && o.solve != "sigma" && o.solve != "epochs" && o.solve != "delta")
    throw InputError(
        "--solve: expected sigma, epochs or delta with --sampling allocation, found '" + o.solve +
        "'");
  if (!allocates(o) && o.solve == "epochs")
    throw InputError(
        "--solve: expected sigma, steps, delta, q or batch without --sampling "
        "allocation, found 'epochs'");
  if (o.solve == (fixed ? "q" : "batch"))
    throw InputError("--solve: expected sigma, steps, delta or " +
                     std::string(fixed ? "batch with --sampling fixed" : "q") + ", found '" +
                     o.solve + "'");
  fill_in_training(o, o.solve);
  std::vector<std::string> missing = missing_release_flags(o, o.solve);
  if (!o.epsilon) missing.emplace_back("--epsilon");
  if (!o.delta && o.solve != "delta") missing.emplace_back("--delta");
  refuse_missing("calibrate", missing);
  if (o.solve != "steps" && o.steps == 0u)
    throw InputError("--steps: expected at least 1, found 0");
  if (o.solve != "q" && o.q == 0.0) throw InputError("--q: expected a rate in (0, 1], found 0");
  privacy::Release release{.mechanism = mechanism_of(o, o.solve), .count = 1};
  if (o.solve != "steps" && o.solve != "epochs") release.count = release_count(o);
  const privacy::Composition before = composition_of(o, {});
  const privacy::AccountantOptions options = bound_options(o);
  const double epsilon = needed(o.epsilon, "--epsilon");
  if (o.solve == "delta") {
    unused(with, "--delta", o.delta);
    o.delta = privacy::Accountant(composition_of(o, {release}), options).delta(epsilon).delta;
    return;
  }
  const double delta = needed(o.delta, "--delta");
  const auto find = [&](auto& unknown, auto calibrate) {
    unused(with, ("--" + o.solve).c_str(), unknown);
    unknown = calibrate(before, release, epsilon, delta, options);
  };
  if (o.solve == "sigma")
    find(o.sigma, privacy::calibrate_sigma);
  else if (o.solve == "steps")
    find(o.steps, privacy::calibrate_steps);
  else if (o.solve == "epochs")
    find(o.epochs, privacy::calibrate_steps);
  else if (o.solve == "q")
    find(o.q, privacy::calibrate_rate);
  else
    find(o.batch, privacy::calibrate_batch);
}

/// Computes the value of the flag that --solve names, as solve() does, for random allocation in
/// which an epoch uses each example in several steps (--uses). Counts one such epoch as --uses
/// shorter epochs that use each example once; together they cost at least as much privacy.
void solve_with_uses(CalibrateFlags& o) {
  fill_in_training(o, o.solve);
  const std::uint64_t uses = uses_of(o), steps = needed(o.steps_per_epoch, "--steps-per-epoch");
  if (steps % uses != 0)
    throw InputError("--uses: expected a divisor of the " + std::to_string(steps) +
                     " steps of an epoch (cudp account takes any number), found " +
                     std::to_string(uses));
  CalibrateFlags parts = o;
  parts.uses.reset();
  parts.examples.reset();
  parts.batch.reset();
  parts.steps_per_epoch = steps / uses;
  if (parts.epochs) *parts.epochs *= uses;
  solve(parts);
  o.sigma = parts.sigma;
  o.delta = parts.delta;
  if (parts.epochs) o.epochs = *parts.epochs / uses;
}

Answer calibrated(CalibrateFlags o, Busy&) {
  if (allocates(o) && uses_of(o) > 1)
    solve_with_uses(o);
  else
    solve(o);
  Answer a{.json = {{"solve", o.solve}, {"epsilon", *o.epsilon}, {"delta", *o.delta}},
           .rows = {{"solved for", o.solve}}};
  // Rounds to the safe side: more noise, a smaller rate, a larger delta.
  const auto show = [&](const char* key, double value) {
    a.add(key, value,
          o.solve != key            ? privacy::number(value)
          : std::string(key) == "q" ? rounded_down(value)
                                    : rounded_up(value));
  };
  const auto show_count = [&](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) a.add(key, *value, std::to_string(*value));
  };
  show("sigma", *o.sigma);
  if (o.q) show("q", *o.q);
  if (!o.n) show_count("examples", o.examples);
  show_count("n", o.n);
  show_count("batch", o.batch);
  show_count("epochs", o.epochs);
  show_count("steps_per_epoch", o.steps_per_epoch);
  show_count("uses", o.uses);
  show_count("steps", o.steps);
  show("epsilon", *o.epsilon);
  show("delta", *o.delta);
  a.json.update({{"accountant", o.accountant}, {"sampling", o.sampling}, {"group", o.group}});
  a.rows.insert(a.rows.end(), {{"accountant", o.accountant}, {"sampling", o.sampling}});
  if (o.group != 1) a.rows.emplace_back("group", std::to_string(o.group));
  return a;
}

constexpr const char* kCalibrateExamples =
    "Examples:\n"
    "  cudp calibrate --epsilon 3 --delta 1e-5 --q 0.0085 --steps 4680\n"
    "  cudp calibrate --epsilon 3 --delta 1e-5 --examples 60000 --batch 512 --epochs 40\n"
    "  cudp calibrate --solve steps --epsilon 3 --delta 1e-5 --q 0.0085 --sigma 1.1\n"
    "  cudp calibrate --solve q --epsilon 3 --delta 1e-5 --sigma 1.1 --steps 4680 --json\n"
    "  cudp calibrate --solve delta --epsilon 3 --q 0.0085 --sigma 1.1 --steps 4680\n"
    "  cudp calibrate --solve batch --sampling fixed --n 60000 --epsilon 3 --delta 1e-5 --sigma "
    "2 "
    "--steps 4680\n"
    "  cudp calibrate --sampling allocation --steps-per-epoch 118 --epochs 20 --epsilon 3 --delta "
    "1e-5\n"
    "Answers are rounded to the safe side: the budget holds for the printed value.";

}  // namespace

std::vector<Option> calibrate_options() {
  using namespace option_rows;
  std::vector<Option> all = accountant_rows(false);
  all.push_back(
      one_of(text("solve", "NAME", &CalibrateFlags::solve,
                  "What to find: sigma, steps, delta, and q or, with --sampling fixed, batch; with "
                  "--sampling allocation sigma, epochs or delta"),
             {"sigma", "steps", "delta", "q", "batch", "epochs"}));
  return all;
}

Answer calibrate_answer(const TrainConfig& config) {
  Busy busy("cudp calibrate", Busy::Shown::never);
  return answered(config, calibrated, busy);
}

void add_calibrate_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "calibrate",
               .description = "Find the noise, steps, rate or delta for a privacy budget",
               .examples = kCalibrateExamples,
               .options = calibrate_options(),
               .run = printed("calibrate", calibrated)});
}

}  // namespace cudp
