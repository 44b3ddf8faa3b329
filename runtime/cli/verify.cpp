#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/verify/released_run.hpp"
#include "runtime/verify/twin.hpp"

namespace cudp {
namespace {

constexpr const char* kVerifyExamples = R"(Examples:
  cudp verify runs/mnist
  cudp verify published/release --json
  cudp verify runs/mnist --twin runs/mnist-twin --data-dir data
Exit codes: 0, all holds; 1, something does not, or the run is not finished; 2, no run, or a file
that cannot be read.
The twin is the same training with a seed, so that its noise can be drawn again: it is not for
release. What it writes down of itself stays in memory, about 30 bytes a parameter and step.
)";

constexpr const char* kNoNoise = "the noise itself cannot be checked: its key is destroyed";

struct VerifyFlags {
  std::string run;
  std::string twin;
  TwinSettings twin_settings;
  bool json = false;
};

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const auto& device : kDevices) names.emplace_back(device.name);
  return names;
}

std::vector<Option> verify_options() {
  using namespace option_rows;
  using Twin = TwinSettings;
  return {
      positional(text("run_dir", "TEXT", &VerifyFlags::run, "run folder, or its release folder")),
      text("twin", "DIR", &VerifyFlags::twin,
           "train the same settings with a seed, in this new folder, and check all that it does"),
      needs("twin", text("data-dir", "DIR", &Twin::data_dir,
                         "with --twin: where the files of the data set are")),
      needs("twin", text("dataset", "NAME", &Twin::dataset,
                         "with --twin: the data set, in place of what the settings name")),
      needs("twin", text("schema", "FILE", &Twin::schema, "with --twin: schema of a table")),
      needs("twin", one_of(text("device", "NAME", &Twin::device,
                                "with --twin: auto, cpu or cuda, in place of the run's"),
                           device_names())),
      needs("twin", integer("seed", "N", &Twin::seed, kWhole,
                            "with --twin: its seed; one at random otherwise")),
      needs("twin", integer("threads", "N", &Twin::threads, kThreads,
                            "with --twin: CPU threads, 0 for every core")),
      json_option(),
  };
}

VerifyFlags verify_flags(const TrainConfig& c) {
  VerifyFlags f = c.of<VerifyFlags>();
  f.twin_settings = c.of<TwinSettings>();
  f.json = c.json;
  return f;
}

void add_statements(Answer& a, const std::vector<verify::Statement>& all, std::size_t names) {
  nlohmann::ordered_json& list = a.json["checks"] = nlohmann::ordered_json::array();
  for (const verify::Statement& s : all) {
    const char* const result = !s.looked_at ? "not checked" : s.wrong.empty() ? "ok" : "differs";
    list.push_back({{"check", s.name}, {"result", result}, {"found", s.found}});
    if (!s.wrong.empty()) list.back()["differences"] = s.wrong;
    add_wrapped(a, s.name, std::string(s.wrong.empty() ? result : "DIFFERS") + "  " + s.found,
                names);
    for (const std::string& wrong : s.wrong) add_wrapped(a, "", "- " + wrong, names);
  }
}

void add_twin(Answer& a, const TwinVerdict& twin, std::size_t names) {
  const verify::Verdict& v = twin.transcript;
  nlohmann::ordered_json& j = a.json["twin"] = {{"seed", twin.seed},
                                                {"releases", v.releases},
                                                {"numbers", v.numbers},
                                                {"updates", v.updates}};
  j["findings"] = nlohmann::ordered_json::array();
  j["differences"] = twin.differences;
  j["not_checked"] = v.skipped;
  const bool holds = v.findings.empty() && twin.differences.empty();
  add_wrapped(
      a, "twin",
      fmt::format("{}  {} numbers of noise drawn again, {} releases and {} updates held, {} "
                  "findings",
                  holds ? "ok" : "DIFFERS", v.numbers, v.releases, v.updates,
                  v.findings.size() + twin.differences.size()),
      names);
  for (const verify::Finding& f : v.findings) {
    j["findings"].push_back({{"rule", f.rule}, {"what", f.what}});
    add_wrapped(a, "", "- " + f.rule + ": " + f.what, names);
  }
  for (const std::string& d : twin.differences) add_wrapped(a, "", "- certificate, " + d, names);
  for (const std::string& s : v.skipped) add_wrapped(a, "", "not checked: " + s, names);
}

/// Returns the checked statements. Shows progress on a terminal, because the accountant may take
/// minutes.
std::vector<verify::Statement> statements_of(const ReleasedRun& run, bool quiet) {
  Busy busy("verifying " + shown(run.release.string()),
            quiet ? Busy::Shown::never : Busy::Shown::on_terminal);
  verify::Bounds bounds;
  bounds.on_rows = [&](double share) { busy.done(share); };
  return check_released_run(run, bounds);
}

int run_verify(VerifyFlags o) {
  const ReleasedRun run = open_released_run(o.run);
  Answer a{.json = {{"run", o.run}, {"status", run.status}}, .rows = {}};
  if (run.status != "finished" && run.status != "refused") {
    a.json["holds"] = false;
    add_wrapped(a, "status",
                "not finished: what is claimed is a plan, and only a finished run can be verified",
                6);
    print(a, o.json);
    return static_cast<int>(Exit::failure);
  }
  if (!o.twin.empty() && run.status == "refused")
    throw InputError("--twin: expected a run that trained, found one that was refused");
  const std::vector<verify::Statement> all = statements_of(run, o.json);
  std::size_t names = std::string_view("status").size();
  for (const verify::Statement& s : all) names = std::max(names, s.name.size());
  add_wrapped(a, "status", run.status, names);
  add_statements(a, all, names);
  bool holds = std::ranges::all_of(all, [](const verify::Statement& s) { return s.wrong.empty(); });
  if (!o.twin.empty()) {
    o.twin_settings.folder = o.twin;
    Reporter reporter(o.json);
    const TwinVerdict twin = train_twin(run, o.twin_settings, reporter);
    add_twin(a, twin, names);
    holds = holds && twin.transcript.findings.empty() && twin.differences.empty();
  }
  a.json["noise"] = kNoNoise;
  a.json["holds"] = holds;
  a.json["taken_on_trust"] = verify::taken_on_trust(run.evidence);
  add_wrapped(a, "", kNoNoise, names);
  for (const std::string& what : verify::taken_on_trust(run.evidence))
    add_wrapped(a, "", "taken on trust: " + what, names);
  add_wrapped(a, "", holds ? "all that can be checked holds" : "something does not hold", names);
  print(a, o.json);
  return static_cast<int>(holds ? Exit::ok : Exit::failure);
}

}  // namespace

void add_verify_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "verify",
               .description = "Check a released run: does what it states hold together?",
               .examples = kVerifyExamples,
               .options = verify_options(),
               .run = [](const TrainConfig& c) { return run_verify(verify_flags(c)); }});
}

}  // namespace cudp
