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
#include "runtime/verify/replay.hpp"

namespace cudp {
namespace {

constexpr const char* kVerifyExamples = R"(Examples:
  cudp verify runs/mnist
  cudp verify published/release --json
  cudp verify runs/mnist --replay runs/mnist-replay --data-dir data
Exit codes: 0, every check passes; 1, a check fails, or the run is not finished; 2, there is no run,
or a file cannot be read.
A replay is the same training with a seed, so that its noise can be drawn again. It is not for
release. Its transcript stays in memory, about 30 bytes per parameter and step.
)";

constexpr const char* kNoNoise = "the noise itself cannot be checked: its key is destroyed";

struct VerifyFlags {
  std::string run;
  std::string replay;
  ReplaySettings replay_settings;
  bool json = false;
};

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const auto& device : kDevices) names.emplace_back(device.name);
  return names;
}

std::vector<Option> verify_options() {
  using namespace option_rows;
  using Replay = ReplaySettings;
  return {
      positional(text("run_dir", "TEXT", &VerifyFlags::run, "run folder, or its release folder")),
      text("replay", "DIR", &VerifyFlags::replay,
           "train the same settings with a seed, in this new folder, and check every step and "
           "release"),
      needs("replay", text("data-dir", "DIR", &Replay::data_dir,
                           "with --replay: folder with the files of the data set")),
      needs("replay", text("dataset", "NAME", &Replay::dataset,
                           "with --replay: data set to use in place of the settings' one")),
      needs("replay", text("schema", "FILE", &Replay::schema, "with --replay: schema of a table")),
      needs("replay", one_of(text("device", "NAME", &Replay::device,
                                  "with --replay: auto, cpu or cuda, in place of the run's device"),
                             device_names())),
      needs("replay", integer("seed", "N", &Replay::seed, kWhole,
                              "with --replay: seed of the replay; random if not given")),
      needs("replay", integer("threads", "N", &Replay::threads, kThreads,
                              "with --replay: CPU threads, 0 for every core")),
      json_option(),
  };
}

VerifyFlags verify_flags(const TrainConfig& c) {
  VerifyFlags f = c.of<VerifyFlags>();
  f.replay_settings = c.of<ReplaySettings>();
  f.json = c.json;
  return f;
}

void add_statements(Answer& a, const std::vector<verify::Statement>& all, std::size_t names) {
  nlohmann::ordered_json& list = a.json["checks"] = nlohmann::ordered_json::array();
  for (const verify::Statement& s : all) {
    const char* const result = !s.is_checked ? "not checked" : s.wrong.empty() ? "ok" : "differs";
    list.push_back({{"check", s.name}, {"result", result}, {"found", s.found}});
    if (!s.wrong.empty()) list.back()["differences"] = s.wrong;
    add_wrapped(a, s.name, std::string(s.wrong.empty() ? result : "DIFFERS") + "  " + s.found,
                names);
    for (const std::string& wrong : s.wrong) add_wrapped(a, "", "- " + wrong, names);
  }
}

void add_replay(Answer& a, const ReplayVerdict& replay, std::size_t names) {
  const verify::Verdict& v = replay.transcript;
  nlohmann::ordered_json& j = a.json["replay"] = {{"seed", replay.seed}};
  if (!replay.size_is_private)
    j.update({{"releases", v.releases}, {"numbers", v.numbers}, {"updates", v.updates}});
  j["findings"] = nlohmann::ordered_json::array();
  j["differences"] = replay.differences;
  j["not_checked"] = v.skipped;
  const bool holds = v.findings.empty() && replay.differences.empty();
  add_wrapped(
      a, "replay",
      fmt::format("{}  {}, {} findings", holds ? "ok" : "DIFFERS",
                  replay.size_is_private
                      ? "all noise values drawn again, all releases and updates checked"
                      : fmt::format("{} noise values drawn again, {} releases and {} updates "
                                    "checked",
                                    v.numbers, v.releases, v.updates),
                  v.findings.size() + replay.differences.size()),
      names);
  for (const verify::Finding& f : v.findings) {
    j["findings"].push_back({{"rule", f.rule}, {"what", f.what}});
    add_wrapped(a, "", "- " + f.rule + ": " + f.what, names);
  }
  for (const std::string& d : replay.differences) add_wrapped(a, "", "- certificate, " + d, names);
  for (const std::string& s : v.skipped) add_wrapped(a, "", "not checked: " + s, names);
}

/// Checks the run's statements and returns the results. Shows progress on a terminal, because the
/// accountant may take minutes.
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
    add_wrapped(
        a, "status",
        "not finished: its certificate states a plan, and only a finished run can be verified", 6);
    print(a, o.json);
    return static_cast<int>(Exit::failure);
  }
  if (!o.replay.empty() && run.status == "refused")
    throw InputError("--replay: expected a run that trained, found one that was refused");
  const std::vector<verify::Statement> all = statements_of(run, o.json);
  std::size_t names = std::string_view("status").size();
  for (const verify::Statement& s : all) names = std::max(names, s.name.size());
  add_wrapped(a, "status", run.status, names);
  add_statements(a, all, names);
  bool holds = std::ranges::all_of(all, [](const verify::Statement& s) { return s.wrong.empty(); });
  if (!o.replay.empty()) {
    o.replay_settings.folder = o.replay;
    Reporter reporter(o.json);
    const ReplayVerdict replay = replay_run(run, o.replay_settings, reporter);
    add_replay(a, replay, names);
    holds = holds && replay.transcript.findings.empty() && replay.differences.empty();
  }
  a.json["noise"] = kNoNoise;
  a.json["holds"] = holds;
  a.json["taken_on_trust"] = verify::taken_on_trust(run.evidence);
  add_wrapped(a, "", kNoNoise, names);
  for (const std::string& what : verify::taken_on_trust(run.evidence))
    add_wrapped(a, "", "taken on trust: " + what, names);
  add_wrapped(a, "", holds ? "every check passed" : "a check failed", names);
  print(a, o.json);
  return static_cast<int>(holds ? Exit::ok : Exit::failure);
}

}  // namespace

void add_verify_command(CLI::App& app, CommandBody& body) {
  add_command(
      app, body,
      {.name = "verify",
       .description =
           "Check that the statements of a released run agree with each other and with its rules",
       .examples = kVerifyExamples,
       .options = verify_options(),
       .run = [](const TrainConfig& c) { return run_verify(verify_flags(c)); }});
}

}  // namespace cudp
