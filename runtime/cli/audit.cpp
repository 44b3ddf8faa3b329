#include "runtime/audit/audit.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/audit/picture.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/settings/options.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kAuditExamples = R"(Examples:
  cudp audit --preset mnist-cnn --data-dir data
  cudp audit --config runs/mine/release/config.toml --canaries 2000 --out audits/mine
  cudp audit --preset glyphs-cnn --canary example --json
One training of the same settings, with canaries put among the examples by coin tosses. It is a test
of the proof and the program together, and releases nothing.
)";

constexpr const char* kAuditUsage =
    "cudp audit SETTINGS OF A TRAINING [flags]  attacks such a training\n";
constexpr HelpLine kAuditLines[] = {
    {"", "Audit"},
    {"canaries", "examples that are in or not by a coin: 1000, or as many as fit"},
    {"canary", "gradient: chosen gradients; example: mislabelled examples"},
    {"guesses", "how many the attacker guesses, 0: a tenth of the canaries"},
    {"confidence", "of each lower bound"},
    {"", "Settings, as of cudp train (--help-all lists all)"},
    {"preset", "tuned settings of a data set"},
    {"config", "settings of a file, such as a run's release/config.toml"},
    {"dataset", "a data set's name, a table or a folder"},
    {"data-dir", "folder with the files of named data sets"},
    {"epsilon", "budget of the training that is attacked"},
    {"delta", "probability that its guarantee fails"},
    {"epochs", "its length"},
    {"out", "folder for audit.json and audit.png"},
    {"threads", "CPU threads, 0: every core"},
    {"json", "print the result as JSON"},
};

struct AuditFlags {
  CanaryKind canary = CanaryKind::gradient;
  std::optional<std::uint64_t> canaries;
  std::uint64_t guesses = 0;
  double confidence = 0.95;
};

constexpr Choice<CanaryKind> kCanaryKinds[] = {{"gradient", CanaryKind::gradient},
                                               {"example", CanaryKind::example}};

std::vector<Option> audit_options() {
  using namespace option_rows;
  std::vector<Option> all = {
      integer(
          "canaries", "N", &AuditFlags::canaries, kWhole,
          "Examples that are in the training set or not, by a coin; 1000 if not given, or as many "
          "as there can be: one for each parameter of the model, half of the examples"),
      choice("canary", &AuditFlags::canary, kCanaryKinds,
             "gradient: chosen gradients, all noisy sums seen; example: mislabelled examples, "
             "model seen"),
      integer("guesses", "N", &AuditFlags::guesses, kWhole,
              "How many the attacker guesses; 0: a tenth of the canaries"),
      option_rows::number("confidence", "P", &AuditFlags::confidence, kInsideUnit,
                          "Confidence of each lower bound"),
  };
  for (Option& option : all) option.group = "Audit";
  return all;
}

AuditSettings settings_of(const AuditFlags& flags) {
  AuditSettings s{.kind = flags.canary,
                  .canaries = flags.canaries,
                  .guesses = {},
                  .confidence = flags.confidence};
  if (flags.guesses != 0) s.guesses = flags.guesses;
  return s;
}

void refuse_what_makes_no_sense(const Settings& flags) {
  for (const char* key :
       {"resume", "resume-or-start", "fresh-noise", "unsafe-diagnostics", "compare-with", "ranks",
        "rank-timeout", "share-device", "sum-by", "rows-in", "tensorboard", "log-json"})
    if (flags.contains(key))
      throw InputError(std::string("--") + key +
                       ": expected none for an audit, which is a run of its own");
}

constexpr const char* kMeaning =
    "Each bound holds alone, with this confidence: anyone who sees what the attacker saw learns at "
    "least so much about an example. A bound above the certificate would show that its proof or "
    "this program is wrong. A bound below it shows only that this attack found nothing wrong, not "
    "that the certificate could be smaller: a better attack or more canaries may show more. It "
    "does not test what no canary passes (which examples there are, the data's files, the key). "
    "\"Any mechanism\" assumes nothing; the others assume that the trade-off curve has the shape "
    "they name.";

std::string of_kind(CanaryKind kind) {
  return kind == CanaryKind::gradient ? "gradients along one parameter each, all noisy sums seen"
                                      : "mislabelled examples, the trained model seen";
}

nlohmann::ordered_json json_of(const AuditResult& r) {
  nlohmann::ordered_json j{
      {"canaries", *r.settings.canaries},
      {"canary", r.settings.kind == CanaryKind::gradient ? "gradient" : "example"},
      {"members", r.members},
      {"guesses", r.guesses.made},
      {"correct", r.guesses.correct},
      {"confidence", r.settings.confidence},
      {"epsilon", r.epsilon},
      {"delta", r.delta},
      {"epsilon_lower_any", r.any},
      {"epsilon_lower_gaussian", r.gaussian}};
  if (r.own) j["epsilon_lower_own"] = *r.own;
  j["refuted"] = r.refutes();
  j["steps"] = r.steps;
  j["seconds"] = r.seconds;
  j["certificate"] = to_json(r.certificate);
  return j;
}

Answer answer_of(const AuditResult& r, const std::string& folder) {
  const auto at_least = [](double epsilon) { return "epsilon >= " + rounded_down(epsilon); };
  Answer a{.json = json_of(r), .rows = {}};
  a.rows = {{"canaries",
             fmt::format("{}, {} of them in the training set", *r.settings.canaries, r.members)},
            {"", of_kind(r.settings.kind)},
            {"guesses", fmt::format("{} right of {}", r.guesses.correct, r.guesses.made)},
            {"confidence", fmt::format("{:g} %", 100.0 * r.settings.confidence)},
            {"certificate", fmt::format("epsilon <= {} at delta {}", rounded_up(r.epsilon),
                                        short_rounded_up(r.delta))},
            {"shown: any mechanism", at_least(r.any)},
            {"shown: Gaussian noise", at_least(r.gaussian)}};
  if (r.own) a.rows.emplace_back("shown: these releases", at_least(*r.own));
  if (r.refutes())
    a.rows.emplace_back("REFUTED", "a bound is above the certificate; repeat with another seed");
  a.rows.emplace_back("steps", fmt::format("{} in {}", r.steps, duration_text(r.seconds)));
  if (!folder.empty()) a.rows.emplace_back("audit folder", folder + " (not for release)");
  std::size_t names = 0;
  for (const auto& [name, value] : a.rows) names = std::max(names, name.size());
  add_wrapped(a, "meaning", kMeaning, names);
  return a;
}

/// Writes the result of an audit to audit.json and audit.png in `folder`, readable by the owner
/// only.
void write(const AuditResult& r, const fs::path& folder, Reporter& reporter) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(folder.string() + ": cannot be made: " + failed.message());
  write_atomically(folder / "audit.json", json_of(r).dump(2) + "\n", 0600);
  if (!draw_audit(r, folder / "audit.png")) reporter.warn("no audit.png: gnuplot is not installed");
}

int run_audit(const Settings& given, const AuditFlags& flags) {
  const AuditSettings settings = settings_of(flags);
  refuse_what_makes_no_sense(given);
  std::vector<std::string> notes;
  const TrainConfig config = resolve_config(given, notes);
  Reporter reporter(config.quiet);
  for (const std::string& note : notes) reporter.info(note);
  if (!config.out.empty()) check_free(config.out);
  const AuditResult result = audit(config, settings, reporter);
  if (!config.out.empty()) write(result, config.out, reporter);
  print(answer_of(result, config.out), config.json);
  return 0;
}

}  // namespace

void add_audit_command(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("audit", "Attack one training, and show a lower bound on its epsilon");
  command->footer(kAuditExamples);
  use_short_help(*command,
                 kAuditUsage + help_lines_text(kAuditLines, audit_options()) + kAuditExamples);
  const auto flags =
      std::make_shared<CommandFlags>(*command, train_options(), Repeated::last_counts);
  const auto own = std::make_shared<CommandFlags>(*command, audit_options(), Repeated::last_counts);
  command->callback([&body, flags, own] {
    body = {
        .run = [flags, own] { return run_audit(flags->given(), own->values().of<AuditFlags>()); },
        .check =
            [flags, own] {
              check_names(flags->values());
              (void)own->values();
            }};
  });
}

}  // namespace cudp
