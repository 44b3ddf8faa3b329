#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>

#include "privacy/number.hpp"
#include "privacy/rdp.hpp"
#include "privacy/zcdp.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"

namespace cudp {
namespace {

using privacy::Guarantee;
using privacy::number;
using privacy::Phase;

struct AccountOptions : AccountantOptions {
  std::optional<std::string> phases;
  std::optional<double> zcdp, rdp_at;
};

/// The Renyi divergence of one step at one order.
Answer divergence_at(const AccountOptions& o) {
  const char* with = "--rdp-at";
  unused(o.zcdp, "--zcdp", with);
  unused(o.phases, "--phases", with);
  unused(o.steps, "--steps", with);
  unused(o.delta, "--delta", with);
  unused(o.epsilon, "--epsilon", with);
  const double q = needed(o.q, "--q"), sigma = needed(o.sigma, "--sigma");
  const double rdp = privacy::rdp_sampled_gaussian(q, sigma, *o.rdp_at);
  if (!std::isfinite(rdp))
    throw InputError("--rdp-at: expected an order with a divergence that double holds, found " +
                     number(*o.rdp_at));
  return {.json = {{"rdp", rdp}, {"order", *o.rdp_at}, {"q", q}, {"sigma", sigma}},
          .rows = {{"rdp", rounded_up(rdp)},
                   {"order", number(*o.rdp_at)},
                   {"q", number(q)},
                   {"sigma", number(sigma)}}};
}

/// Zero-concentrated DP as (epsilon, delta).
Answer zcdp_as_epsilon(const AccountOptions& o) {
  const char* with = "--zcdp";
  unused(o.phases, "--phases", with);
  unused(o.q, "--q", with);
  unused(o.sigma, "--sigma", with);
  unused(o.steps, "--steps", with);
  unused(o.epsilon, "--epsilon", with);
  const double delta = needed(o.delta, "--delta");
  const double epsilon = privacy::epsilon_from_zcdp(*o.zcdp, delta);
  const double classical = privacy::epsilon_from_zcdp_classical(*o.zcdp, delta);
  return {.json = {{"epsilon", epsilon},
                   {"epsilon_classical", classical},
                   {"rho", *o.zcdp},
                   {"delta", delta}},
          .rows = {{"epsilon", rounded_up(epsilon) + "  (Canonne, Kamath, Steinke 2020)"},
                   {"epsilon, classical", rounded_up(classical) + "  (Bun, Steinke 2016)"},
                   {"rho", number(*o.zcdp)},
                   {"delta", number(delta)}}};
}

std::vector<Phase> phases_of(const AccountOptions& o) {
  if (!o.phases)
    return {{.q = needed(o.q, "--q"),
             .sigma = needed(o.sigma, "--sigma"),
             .steps = needed(o.steps, "--steps")}};
  unused(o.q, "--q", "--phases");
  unused(o.sigma, "--sigma", "--phases");
  unused(o.steps, "--steps", "--phases");
  return read_phases(*o.phases);
}

/// Epsilon from delta or delta from epsilon, for one phase or several.
Answer epsilon_or_delta(const AccountOptions& o) {
  if (o.epsilon.has_value() == o.delta.has_value())
    throw InputError(std::string("account: expected one of --delta and --epsilon, found ") +
                     (o.delta ? "both" : "none"));
  const std::vector<Phase> phases = phases_of(o);
  const Guarantee found = o.delta ? privacy::epsilon_of(phases, *o.delta, o.orders)
                                  : privacy::delta_of(phases, *o.epsilon, o.orders);
  Answer answer{.json = {{"epsilon", found.epsilon},
                         {"delta", found.delta},
                         {"accountant", o.accountant},
                         {"sampling", "poisson"},
                         {"order", found.order}},
                .rows = {{"epsilon", o.delta ? rounded_up(found.epsilon) : number(found.epsilon)},
                         {"delta", o.delta ? number(found.delta) : rounded_up(found.delta)},
                         {"accountant", o.accountant + ", best at order " + number(found.order)},
                         {"sampling", "poisson"}}};
  if (!o.phases) {
    answer.json.update(
        {{"q", phases[0].q}, {"sigma", phases[0].sigma}, {"steps", phases[0].steps}});
    answer.rows.insert(answer.rows.end(), {{"q", number(phases[0].q)},
                                           {"sigma", number(phases[0].sigma)},
                                           {"steps", std::to_string(phases[0].steps)}});
    return answer;
  }
  for (const Phase& phase : phases) {
    answer.json["phases"].push_back(
        {{"q", phase.q}, {"sigma", phase.sigma}, {"steps", phase.steps}});
    answer.rows.emplace_back("phase " + std::to_string(answer.json["phases"].size()),
                             "q " + number(phase.q) + ", sigma " + number(phase.sigma) +
                                 ", steps " + std::to_string(phase.steps));
  }
  return answer;
}

Answer answer_of(const AccountOptions& o) {
  check_accountant(o);
  if (o.rdp_at) return divergence_at(o);
  if (o.zcdp) return zcdp_as_epsilon(o);
  return epsilon_or_delta(o);
}

}  // namespace

void add_account_command(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand("account", "Say what privacy a mechanism spends");
  const auto options = std::make_shared<AccountOptions>();
  add_accountant_options(*command, *options);
  command->add_option("--phases", options->phases,
                      "JSON file: a list of {\"q\": ..., \"sigma\": ..., \"steps\": ...}, in place "
                      "of --q, --sigma and --steps");
  command->add_option("--zcdp", options->zcdp, "Convert this rho of zero-concentrated DP");
  command->add_option("--rdp-at", options->rdp_at,
                      "Renyi divergence of one step, at this order, in nats");
  command->footer(
      "Examples:\n"
      "  cudp account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6\n"
      "  cudp account --q 0.01 --sigma 1.0 --steps 2000 --epsilon 2 --json\n"
      "  cudp account --phases phases.json --delta 1e-6\n"
      "  cudp account --zcdp 0.1 --delta 1e-5\n"
      "  cudp account --rdp-at 8.25 --q 0.001 --sigma 0.8 --json\n"
      "Batches are Poisson samples, and neighbours differ by one example added or removed.");
  command->callback([options, &body] {
    body = [options] { return for_user([&] { print(answer_of(*options), options->json); }); };
  });
}

}  // namespace cudp
