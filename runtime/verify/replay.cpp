#include "runtime/verify/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "models/model.hpp"
#include "privacy/certificate/certificate.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/fine_tuning.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/gate/transcript.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/settings.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

/// Replaces the name of a file by its path in the data folder, if the file exists there and the
/// name has no folder (other than "./").
void find_file(std::string& name, const std::string& data_dir) {
  std::error_code ignored;
  const fs::path file(name);
  if (name.empty() || (file.has_parent_path() && file.parent_path() != ".")) return;
  if (const fs::path there = fs::path(data_dir) / file.filename(); fs::exists(there, ignored))
    name = there.string();
}

std::int64_t unguessed_seed() {
  SecretKey key{make_key()};
  const std::uint64_t words = key.key().words[0] | std::uint64_t{key.key().words[1]} << 32;
  return static_cast<std::int64_t>(words >> 1);
}

/// Returns the run's released settings, with a seed and with paths on this machine.
TrainConfig replay_config(const ReleasedRun& run, const ReplaySettings& s) {
  const std::string source = (run.release / "config.toml").string();
  TrainConfig c;
  apply_settings(parse_settings(run.evidence.settings, source), c);
  c.seed = s.seed ? *s.seed : unguessed_seed();
  c.threads = s.threads;
  if (!s.data_dir.empty()) c.data_dir = s.data_dir;
  if (!s.device.empty()) find_option("device")->set(c, s.device, "--device");
  if (!s.dataset.empty())
    c.dataset = s.dataset;
  else if (!is_named_dataset(c.dataset))
    find_file(c.dataset, c.data_dir);
  if (shipped_schema(c.schema).empty()) find_file(c.schema, c.data_dir);
  if (!s.schema.empty()) c.schema = s.schema;
  for (std::string* const file :
       {&c.test_data, &c.labels, &c.test_labels, &c.of<FineTuning>().init})
    find_file(*file, c.data_dir);
  TextOptions& text = c.of<TextOptions>();
  find_file(text.vocabulary, c.data_dir);
  find_file(text.embedding, c.data_dir);
  c.out = (s.folder / "run").string();
  check_complete(c);
  return c;
}

/// Makes the folder of the replay. The destructor removes it if it is empty.
class ReplayFolder {
 public:
  explicit ReplayFolder(const fs::path& path) : path_(path) {
    std::error_code failed;
    const auto refuse = [&](const std::string& found) {
      throw InputError("--replay " + path.string() + ": expected a new folder, found " + found);
    };
    if (fs::exists(fs::symlink_status(path, failed))) refuse("one that exists");
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), failed);
    if (!fs::create_directory(path, failed)) refuse(failed ? failed.message() : "one that exists");
    fs::permissions(path, fs::perms::owner_all);
  }
  ~ReplayFolder() {
    std::error_code not_empty;
    fs::remove(path_, not_empty);
  }
  ReplayFolder(const ReplayFolder&) = delete;
  ReplayFolder& operator=(const ReplayFolder&) = delete;

 private:
  fs::path path_;
};

/// Sets the config's model for a replay. If it is not a built-in one, the layers are stored as TOML
/// in the model's file; writes them to a file in `folder`, and sets the model to that file.
void find_model(TrainConfig& c, const ReleasedRun& run, const fs::path& folder) {
  if (!c.model.ends_with(".toml")) return;
  const std::string source = run.model().string();
  const TensorFile file = decode_safetensors(read_file(run.model()), source);
  const fs::path model = folder / fs::path(c.model).filename();
  write_atomically(model, released_text(file, "model", source), 0600);
  c.model = model.string();
}

/// Returns whether a JSON pointer is equal to the pointer `entry` or points to a part of that
/// entry.
bool is_under(std::string_view pointer, std::string_view entry) {
  return pointer == entry || (pointer.starts_with(entry) && pointer[entry.size()] == '/');
}

std::string value_at(const Json& certificate, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (!certificate.contains(at)) return "none";
  std::string text = certificate.at(at).dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// Prepares the replay of a tuning's released training, in which one noisy number of examples has a
/// part of the tuning's budget: makes the replay divide its budget in the same way. Does nothing
/// for other runs.
void share_count(const privacy::Certificate& stated, TrainConfig& config) {
  if (!stated.tuning || !stated.tuning->count) return;
  config.of<KeysInUse>().count =
      CountInUse{.budget = *stated.tuning->count,
                 .key = SharedKey(key_from_seed(static_cast<std::uint64_t>(*config.seed))),
                 .value = {}};
}

/// Returns the certificate of a replay in a form that can be compared with that of the run. For a
/// tuning, the replay makes only the released training, so the run's statements about the selection
/// among trainings are added.
std::string as_selected(const privacy::Certificate& stated, const std::string& replay) {
  if (!stated.tuning) return replay;
  privacy::Certificate c = privacy::read_certificate(replay);
  c.select(*stated.tuning, stated.delta);
  return privacy::to_text(c);
}

}  // namespace

std::vector<std::string> certificate_differences(const std::string& run,
                                                 const std::string& replay) {
  Json a = Json::parse(run);
  Json b = Json::parse(replay);
  // Report pages contain nothing that is not in the certificate.
  a.erase("pages");
  b.erase("pages");
  // Removes the flags about initial weights. They depend on files beside the file of weights, e.g.
  // its certificate, which the replay may not find.
  for (Json* const c : {&a, &b}) {
    if (!c->contains("unsafe_flags") || !(*c)["unsafe_flags"].is_array()) continue;
    Json& flags = (*c)["unsafe_flags"];
    flags.erase(std::remove_if(flags.begin(), flags.end(),
                               [](const Json& flag) {
                                 return flag.is_string() &&
                                        flag.get<std::string>().starts_with("initial weights ");
                               }),
                flags.end());
  }
  // Fields that may differ in every replay: those that follow from its seed or its build, the last
  // clipping norm, which depends on noise, and the description of the training that made the
  // initial weights, which depends on files beside them. The SHA-256 of the weights must be the
  // same.
  std::set<std::string> allowed = {"/seeded",
                                   "/not_for_release",
                                   "/for_release",
                                   "/build",
                                   "/accountant_version",
                                   "/quantile/C_last",
                                   "/warnings",
                                   "/public_inputs/0/not_counted"};
  const auto allow = [&](std::initializer_list<const char*> more) {
    for (const char* m : more) allowed.insert(m);
  };
  const std::string method = a.value("method", "");
  const bool private_size = a.contains("size_release") && b.contains("size_release");
  if (private_size)
    allow({"/size_release/noisy_size",
           "/q",
           "/sampling_threshold",
           "/sigma",
           "/noise_std",
           "/sensitivity",
           "/loss_sensitivity",
           "/expected_batch",
           "/steps",
           "/steps_planned",
           "/releases",
           "/epsilon_lower",
           "/order",
           "/loss_interval",
           "/delta_for_rounding",
           "/noise_over_time",
           "/noisy_values",
           "/norm_total_noise",
           "/quantile/gradient_noise_multiplier",
           "/quantile/count_noise_std",
           "/groups",
           "/grid",
           "/regulariser",
           "/kappa",
           "/output_noise_std",
           "/output_sensitivity",
           "/generations",
           "/selection_epsilon",
           "/parents",
           "/candidates",
           "/filter",
           "/feature_release/sigma"});
  // In these methods the number of steps, and what they release, depends on earlier noisy releases.
  if (method == "dp-agd" || method == "dpis")
    allow({"/steps", "/releases", "/noisy_values", "/filter/rho_spent", "/epsilon_lower"});
  // The run has more steps than planned, because it repeated some with a new random key and charged
  // them again.
  if (a.value("steps", 0.0) > a.value("steps_planned", 0.0) && a.contains("steps_planned"))
    allow({"/steps", "/releases", "/noisy_values", "/epsilon", "/training_epsilon",
           "/epsilon_lower", "/groups"});
  std::vector<std::string> all;
  for (const Json& change : Json::diff(a, b)) {
    const auto path = change.at("path").get<std::string>();
    // epsilon of output perturbation may differ by the tolerance of the search for the noise.
    const auto close = [&] {
      if (!private_size || (path != "/epsilon" && path != "/training_epsilon")) return false;
      const Json::json_pointer at(path);
      return a.contains(at) && b.contains(at) && a[at].is_number() && b[at].is_number() &&
             std::abs(a[at].get<double>() / b[at].get<double>() - 1.0) < 1e-6;
    };
    if (std::ranges::any_of(allowed, [&](const std::string& m) { return is_under(path, m); }) ||
        close())
      continue;
    all.push_back(path.substr(1) + ": the run " + value_at(a, path) + ", its replay " +
                  value_at(b, path));
  }
  // Fields that may differ must exist in both certificates.
  for (const std::string& m : allowed) {
    const Json::json_pointer at(m);
    if (m != "/not_for_release" && a.contains(at) != b.contains(at))
      all.push_back(m.substr(1) + ": the run " + value_at(a, m) + ", its replay " + value_at(b, m));
  }
  return all;
}

ReplayVerdict replay_run(const ReleasedRun& run, const ReplaySettings& settings,
                         Reporter& reporter) {
  TrainConfig config = replay_config(run, settings);
  const privacy::Certificate stated = privacy::read_certificate(run.evidence.certificate);
  share_count(stated, config);
  const ReplayFolder folder(settings.folder);
  find_model(config, run, settings.folder);

  const bool size_is_private = !stated.size.is_public();
  // The training's messages contain its noisy number of examples. The noise follows from the seed,
  // so they would reveal the exact number.
  Reporter silent(Reporter::Silent{});
  if (size_is_private)
    reporter.info(
        "the number of training examples is private, and a replay's noise is no secret: its "
        "progress is in " +
        RunFolder(config.out).log().string());
  const TranscriptMemory memory;
  Transcript transcript(SeededKey(config), memory.file());
  verify::Evidence evidence;
  try {
    const std::unique_ptr<Run> replay =
        start_run(config, size_is_private ? silent : reporter, &transcript);
    static_cast<void>(train(*replay));
    evidence.certificate = as_selected(stated, read_file(replay->folder.certificate()));
    evidence.ledger = read_file(replay->folder.ledger());
    evidence.settings = read_file(replay->folder.config());
  } catch (const Error& e) {
    const RunFolder ended(config.out);
    std::error_code none;
    if (!size_is_private || !fs::exists(ended.certificate(), none)) throw;
    // The message of `e` may contain the noisy number of examples, so it is not shown.
    if (e.code() == Exit::again) throw Error("the replay was interrupted", e.code());
    const Json certificate = Json::parse(read_file(ended.certificate()), nullptr, false);
    if (certificate.is_object() && certificate.value("status", "") == "refused")
      throw Error("the replay was refused by its own noisy number of training examples, which " +
                      ended.certificate().string() + " has",
                  e.code());
    append_line(ended.log(), e.what());
    throw Error("the replay failed, for a reason that is in " + ended.log().string(), e.code());
  }
  evidence.transcript = memory.content();
  ReplayVerdict verdict{.transcript = {},
                        .differences = {},
                        .seed = *config.seed,
                        .size_is_private = size_is_private};
  try {
    verdict.transcript = verify::check(evidence);
  } catch (const std::invalid_argument& e) {
    throw Error(std::string("the replay: ") + e.what());
  }
  verdict.differences = certificate_differences(run.evidence.certificate, evidence.certificate);
  return verdict;
}

}  // namespace cudp
