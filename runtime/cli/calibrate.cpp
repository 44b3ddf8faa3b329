#include "privacy/calibrate.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "privacy/number.hpp"
#include "privacy/rdp.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"

namespace cudp {
namespace {

using privacy::number;
using privacy::Phase;

struct CalibrateOptions : AccountantOptions {
  std::string solve = "sigma";
};

/// Fills in the one that is asked for from the other four.
void solve(CalibrateOptions& o) {
  const std::string with = "--solve " + o.solve;
  if (o.solve == "sigma") {
    unused(o.sigma, "--sigma", with);
    o.sigma = privacy::sigma_for(needed(o.epsilon, "--epsilon"), needed(o.delta, "--delta"),
                                 needed(o.q, "--q"), needed(o.steps, "--steps"), {}, o.orders);
  } else if (o.solve == "steps") {
    unused(o.steps, "--steps", with);
    o.steps = privacy::steps_for(needed(o.epsilon, "--epsilon"), needed(o.delta, "--delta"),
                                 needed(o.q, "--q"), needed(o.sigma, "--sigma"), {}, o.orders);
  } else if (o.solve == "q") {
    unused(o.q, "--q", with);
    o.q = privacy::rate_for(needed(o.epsilon, "--epsilon"), needed(o.delta, "--delta"),
                            needed(o.sigma, "--sigma"), needed(o.steps, "--steps"), {}, o.orders);
  } else if (o.solve == "delta") {
    unused(o.delta, "--delta", with);
    const Phase phase{.q = needed(o.q, "--q"),
                      .sigma = needed(o.sigma, "--sigma"),
                      .steps = needed(o.steps, "--steps")};
    o.delta = privacy::delta_of({&phase, 1}, needed(o.epsilon, "--epsilon"), o.orders).delta;
  } else {
    throw InputError("--solve: expected sigma, steps, q or delta, found '" + o.solve + "'");
  }
}

Answer answer_of(CalibrateOptions o) {
  check_accountant(o);
  solve(o);
  // The safe side: more noise, a smaller rate, a larger delta.
  const auto shown = [&](const char* key, double value) {
    if (o.solve != key) return number(value);
    return o.solve == "q" ? rounded_down(value) : rounded_up(value);
  };
  return {.json = {{"solve", o.solve},
                   {"epsilon", *o.epsilon},
                   {"delta", *o.delta},
                   {"q", *o.q},
                   {"sigma", *o.sigma},
                   {"steps", *o.steps},
                   {"accountant", o.accountant},
                   {"sampling", "poisson"}},
          .rows = {{"solved for", o.solve},
                   {"sigma", shown("sigma", *o.sigma)},
                   {"q", shown("q", *o.q)},
                   {"steps", std::to_string(*o.steps)},
                   {"epsilon", number(*o.epsilon)},
                   {"delta", shown("delta", *o.delta)},
                   {"accountant", o.accountant},
                   {"sampling", "poisson"}}};
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Find the noise, steps, rate or delta for a privacy budget");
  const auto options = std::make_shared<CalibrateOptions>();
  add_accountant_options(*command, *options);
  command->add_option("--solve", options->solve, "What to find: sigma, steps, q or delta")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  cudp calibrate --epsilon 3 --delta 1e-5 --q 0.0085 --steps 4680\n"
      "  cudp calibrate --solve steps --epsilon 3 --delta 1e-5 --q 0.0085 --sigma 1.1\n"
      "  cudp calibrate --solve q --epsilon 3 --delta 1e-5 --sigma 1.1 --steps 4680 --json\n"
      "  cudp calibrate --solve delta --epsilon 3 --q 0.0085 --sigma 1.1 --steps 4680\n"
      "Answers are rounded to the safe side: the budget holds for the printed value.");
  command->callback([options, &body] {
    body = [options] { return for_user([&] { print(answer_of(*options), options->json); }); };
  });
}

}  // namespace cudp
