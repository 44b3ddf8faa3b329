#include "runtime/verify/released_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "models/model.hpp"
#include "privacy/text/json_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/sensitivity_limit.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/methods/norm_bound.hpp"
#include "runtime/report/pages.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/holdout_bars.hpp"
#include "runtime/results/model_inputs.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/released_text.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/training/public_weights.hpp"
#include "runtime/verify/released_bytes.hpp"
#include "runtime/verify/released_settings.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Name of the file in release/ that states why a run must not be released.
constexpr const char* kNote = "NOT-FOR-RELEASE.txt";
constexpr const char* kPages[] = {kReportPage, kPrivacyText, kModelCard};

std::string shape_text(const std::vector<int>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Returns the content of a file. Throws InputError if it does not exist.
std::string read_input(const fs::path& path) {
  if (!fs::is_regular_file(path))
    throw InputError(path.string() +
                     ": no such file. Give the folder of a run with a certificate.");
  try {
    return read_file(path);
  } catch (const Error& e) {
    throw InputError(e.what());
  }
}

/// Returns the differences between the tensors in the file and those of the network, one line each.
/// extra: names of tensors that the file may have in addition.
std::vector<std::string> tensor_differences(const TensorFile& file, const Network& network,
                                            const std::set<std::string>& extra) {
  std::vector<std::string> wrong;
  std::set<std::string> known = extra;
  for (const auto* list : {&network.parameters, &network.zeros})
    for (const ParameterTensor& t : *list) {
      known.insert(t.name);
      const auto found = std::ranges::find(file.tensors, t.name, &ParameterTensor::name);
      if (found == file.tensors.end())
        wrong.push_back(t.name + ": expected " + shape_text(t.shape) + ", found none");
      else if (found->shape != t.shape)
        wrong.push_back(t.name + ": expected " + shape_text(t.shape) + ", found " +
                        shape_text(found->shape));
    }
  for (const ParameterTensor& t : file.tensors)
    if (!known.contains(t.name))
      wrong.push_back(t.name + ": unexpected tensor " + shape_text(t.shape));
  return wrong;
}

/// Builds the network that the model's file describes. If the word vectors are in another file,
/// their length is not known; then tries lengths until the tensors have the right shapes.
Network network_of(const TensorFile& file, const fs::path& path) {
  const std::string source = path.string();
  const std::optional<ReleasedWords> words = released_words(file, path);
  if (!words) return released_network(file, {}, source);
  if (!words->has_vectors || words->columns > 0)
    return released_network(file, {.words = words->rows, .columns = words->columns}, source);
  std::set<int> lengths;
  for (const ParameterTensor& t : file.tensors)
    for (const int length : t.shape) lengths.insert(length);
  std::optional<Network> first;
  std::string why = ": no tensor shows the length of the words' vectors";
  for (const int length : lengths) {
    try {
      Network n = released_network(file, {.words = words->rows, .columns = length}, source);
      if (tensor_differences(file, n, {}).empty()) return n;
      if (!first) first = std::move(n);
    } catch (const InputError& e) {
      why = e.what();
    }
  }
  if (!first) throw InputError(why.starts_with(':') ? source + why : why);
  return *std::move(first);
}

/// Checks the tensor with the noisy statistics from which features are computed.
void check_feature_tensor(const TensorFile& file, const Network& network,
                          const FeatureSettings& features, verify::Statement& s) {
  const bool pca = features.kind == Features::pca;
  const std::string name = pca ? "features.projection" : "features.scaling";
  const auto t = std::ranges::find(file.tensors, name, &ParameterTensor::name);
  if (t == file.tensors.end()) {
    s.wrong.push_back(name + ": missing");
    return;
  }
  const int rows = pca ? network.input.size() : 2;
  const bool fits =
      t->shape.size() == 2 && t->shape[0] == rows && (pca || t->shape[1] == network.input.channels);
  if (!fits)
    s.wrong.push_back(name + ": expected " + std::to_string(rows) + " rows, found " +
                      shape_text(t->shape));
}

/// Checks that the model's schema and the certificate state the same unit of privacy.
void check_unit(const TensorFile& file, const std::string& source,
                const verify::StatedNumbers& certificate, verify::Statement& s) {
  const auto text = [](const std::string& unit, std::uint64_t rows) {
    return unit.empty() ? std::string("none") : fmt::format("{} rows by {}", rows, shown(unit));
  };
  UnitOfPrivacy unit;
  if (file.metadata.contains("schema"))
    unit = parse_schema(released_text(file, "schema", source), source + ", schema")
               .unit.value_or(UnitOfPrivacy{});
  const std::string expected = text(certificate.unit, certificate.max_rows);
  const std::string found = text(unit.column, unit.max_rows);
  if (expected != found)
    s.wrong.push_back("schema's unit: expected " + expected + " of the certificate, found " +
                      found);
}

/// Checks that certificate, settings and model state the same file of pre-trained weights.
void check_initial_weights(const TensorFile& file, const Network& network,
                           const std::string& certificate, const verify::Settings& settings,
                           verify::Statement& s) {
  const auto stated = privacy::read_certificate(certificate).initial_weights;
  if (stated != released_initial_weights(file))
    s.wrong.emplace_back(
        "public_inputs: expected the file of initial weights that the model names, found another");
  if (!stated) return;
  std::vector<std::string> frozen;
  if (settings.has("freeze")) {
    try {
      frozen = tensors_of_layers(network, frozen_layers(network, settings.text("freeze")));
    } catch (const InputError& e) {
      s.wrong.emplace_back(e.what());
    }
  }
  if (frozen != stated->frozen)
    s.wrong.push_back(fmt::format("frozen: expected {} as the settings name them, found {}",
                                  fmt::join(frozen, ", "), fmt::join(stated->frozen, ", ")));
}

/// Checks that the stated sensitivity is at most clip_norm plus what rounding can add for this
/// network (sensitivity_limit()).
void check_sensitivity(const Network& network, const verify::StatedNumbers& c,
                       verify::Statement& s) {
  if (!verify::kinds_of(c).engine) return;
  verify::GradientSize size;
  for (const ParameterTensor& t : network.parameters) {
    size.all += static_cast<double>(t.touched);
    size.largest_tensor = std::max(size.largest_tensor, static_cast<double>(t.touched));
  }
  const double limit = verify::sensitivity_limit(c.clip, size, c.method == "adaclip");
  if (!(c.sensitivity <= limit))
    s.wrong.push_back("sensitivity: expected at most " + privacy::number(limit) +
                      ", C and the rounding of the model's gradients, found " +
                      privacy::number(c.sensitivity));
}

/// Checks that C of the method norm-bound is the bound on the norm of any gradient (norm_bound()),
/// as the certificate states that no gradient is cut. The bound follows from the model and from the
/// range of its inputs.
void check_norm_bound(const Network& network, const ModelInputs& inputs,
                      const verify::Settings& settings, const verify::StatedNumbers& c,
                      verify::Statement& s) {
  if (c.method != "norm-bound") return;
  Dataset format;
  format.shape = network.input;
  // Normalised pixels are no bytes.
  if (inputs.pixels && !(settings.has("normalise") && settings.text("normalise") != "none")) {
    format.holds_bytes = true;
    format.scale = inputs.pixels->scale;
    format.shift = inputs.pixels->shift;
  }
  try {
    const double bound = norm_bound(network, format);
    if (!(std::fabs(c.clip - bound) <= 1e-12 * bound))
      s.wrong.push_back("C: expected " + privacy::number(bound) +
                        ", the longest gradient of this model, found " + privacy::number(c.clip));
  } catch (const InputError& e) {
    s.wrong.emplace_back(e.what());
  }
}

/// Checks that the certificate states it if a setting allowed private rows to determine the
/// vocabulary or the bounds of arrays. (Whether rows completed the schema of a table cannot be seen
/// in the schema.)
void check_private_inputs(bool has_words, const verify::Settings& settings,
                          const nlohmann::json& certificate, verify::Statement& s) {
  const auto set = [&](const char* key) {
    return settings.has(key) ? settings.text(key) : std::string();
  };
  const auto expect_flag = [&](const std::string& begin, const char* why) {
    const auto flags = certificate.value("unsafe_flags", std::vector<std::string>());
    if (std::ranges::none_of(flags, [&](const auto& flag) { return flag.starts_with(begin); }))
      s.wrong.push_back("unsafe_flags: expected '" + begin + "', as " + why + ", found none");
  };
  const bool accepts = set("accept-private-bounds") == "true";
  if (has_words && !set("vocabulary").empty() && set("vocabulary-is-public") != "true")
    expect_flag("vocabulary not declared public",
                "the settings name a vocabulary without vocabulary-is-public");
  // The built-in data set `sentences` has a vocabulary of its own.
  const bool is_listed = !set("vocabulary").empty() || !set("embedding").empty();
  if (has_words && !is_listed && set("dataset") != "sentences")
    expect_flag("vocabulary counted from private text", "the settings name no list of words");
  if (accepts && is_matrix(set("dataset")))
    expect_flag("bounds, categories or classes were read from private rows",
                "accept-private-bounds is on and the rows are those of an array");
}

verify::Statement check_tensors(const ReleasedRun& run) {
  verify::Statement s{.name = "model", .found = {}, .wrong = {}};
  if (run.status == "refused") {
    s.found = "none: the run was refused";
    if (run.has_model) s.wrong.push_back("model.safetensors: expected none of a refused run");
    return s;
  }
  const std::string source = run.model().string();
  const TensorFile file = decode_safetensors(read_input(run.model()), source);
  const verify::Settings settings(run.evidence.settings);
  const auto json = privacy::parse_json(run.evidence.certificate);
  const verify::StatedNumbers certificate = verify::read_stated_numbers(run.evidence.certificate);

  const auto expect = [&](const char* what, const std::string& expected, const std::string& found) {
    if (expected != found)
      s.wrong.push_back(std::string(what) + ": expected " + expected + ", found " + found);
  };
  const auto text = [&](const char* key) -> const std::string& {
    return released_text(file, key, source);
  };
  const auto set = [&](const char* key) {
    return settings.has(key) ? settings.text(key) : std::string();
  };
  expect("dataset", json.at("dataset").get<std::string>(), text("dataset"));
  expect("activation", set("activation"), text("activation"));
  expect("normalise", settings.has("normalise") ? set("normalise") : std::string("none"),
         file.metadata.contains("normalise") ? text("normalise") : std::string("none"));
  expect("features", set("features"),
         file.metadata.contains("features") ? text("features") : std::string("none"));
  check_unit(file, source, certificate, s);
  if (read_inputs(file, source).array_target != parse_target_bounds(set("target-bounds"), source))
    s.wrong.emplace_back("target-bounds: expected the bounds of the model's target, found others");
  const std::string_view builtin = builtin_model(set("model"));
  if (!builtin.empty() && builtin != text("model"))
    s.wrong.push_back("model: expected the built-in " + set("model") + ", found another text");

  const Network network = network_of(file, run.model());
  if (has_target(network.spec.loss))
    expect("loss", network.spec.loss == Loss::huber ? "huber" : "squared",
           set("loss").empty() ? std::string("squared") : set("loss"));
  const FeatureSettings features = released_features(file, source);
  std::set<std::string> extra;
  if (rest_on_release(features)) {
    extra = {"features.projection", "features.scaling"};
    check_feature_tensor(file, network, features, s);
  }
  if (set("store-embedding") == "true") extra.insert(kStoredVectors);
  for (std::string& wrong : tensor_differences(file, network, extra))
    s.wrong.push_back(std::move(wrong));
  if (s.wrong.empty() && encode_again(file, run.model(), network) != read_input(run.model()))
    s.wrong.emplace_back(
        "model.safetensors: expected the model as the program writes it, found more metadata, "
        "numbers or bytes");
  check_initial_weights(file, network, run.evidence.certificate, settings, s);
  check_sensitivity(network, certificate, s);
  check_norm_bound(network, read_inputs(file, source), settings, certificate, s);
  const bool has_risk = certificate.method == "objpert" || certificate.method == "outpert";
  if (has_risk && (network.spec.loss == Loss::hinge) != json.contains("huber"))
    s.wrong.emplace_back("huber: expected if and only if the model has the hinge loss");
  // These methods release all parameters, or their gradient, as one vector each time.
  if (certificate.method == "dp-agd" || certificate.method == "outpert")
    for (const privacy::NoisyValue& l : certificate.noisy_values)
      if (l.name == "sum of clipped gradients" || l.name == "minimum of the objective")
        if (l.numbers != network.parameter_count)
          s.wrong.push_back(fmt::format("{}: expected {} numbers as the model has, listed {}",
                                        l.name, network.parameter_count, l.numbers));
  s.found = fmt::format("{} tensors, {} parameters of {}", file.tensors.size(),
                        network.parameter_count, network.spec.name);
  return s;
}

/// Checks the released test results of held-out rows in holdout.json: they must fit the model (its
/// classes, or its regression target), and the confidence intervals must follow from the noisy
/// numbers.
void check_holdout(const ReleasedRun& run, const ModelInputs& inputs, verify::Statement& s) {
  if (!run.evidence.holdout) return;
  const verify::StatedNumbers c = verify::read_stated_numbers(run.evidence.certificate);
  if (!c.holdout) return;
  const auto json = nlohmann::json::parse(*run.evidence.holdout);
  std::vector<ErrorBar> bars;
  if (json.contains("confusion")) {
    if (json.at("classes") != nlohmann::json(inputs.classes()))
      s.wrong.push_back("holdout.json: expected the model's classes, found " +
                        json.at("classes").dump());
    NoisyConfusion noisy{.classes = static_cast<int>(json["confusion"].size()),
                         .noisy = {},
                         .noise_std = c.holdout->sigma,
                         .unit_rows = c.max_rows};
    for (const auto& row : json["confusion"])
      for (const auto& count : row) noisy.noisy.push_back(count.get<double>());
    if (noisy.noisy.size() != json["confusion"].size() * json["confusion"].size()) return;
    bars = error_bars(noisy);
  } else {
    const std::optional<TargetBounds> bounds = inputs.target();
    if (!bounds) {
      s.wrong.emplace_back("holdout.json: expected a confusion matrix of the model's classes");
      return;
    }
    const auto& sums = json.at("sums_over_width");
    bars = error_bars(NoisyErrors{.rows = sums.at("rows").get<double>(),
                                  .distances = sums.at("absolute_errors").get<double>(),
                                  .squares = sums.at("squared_errors").get<double>(),
                                  .fourth_powers = sums.at("fourth_powers").get<double>(),
                                  .width = bounds->max - bounds->min,
                                  .noise_std = c.holdout->sigma,
                                  .unit_rows = c.max_rows});
  }
  nlohmann::json expected = nlohmann::json::array();
  for (const ErrorBar& b : bars)
    expected.push_back({{"metric", b.name}, {"value", b.value}, {"low", b.low}, {"high", b.high}});
  // Comparing after a round trip through text turns numbers that are not finite into null.
  if (nlohmann::json::parse(expected.dump()) != json.at("bars"))
    s.wrong.emplace_back(
        "holdout.json: expected the bounds that follow from its numbers, found others");
}

/// Checks that NOT-FOR-RELEASE.txt has the reasons that the certificate states.
void check_note(const ReleasedRun& run, const nlohmann::json& json, verify::Statement& s) {
  std::vector<std::string> stated, noted;
  if (json.contains("not_for_release"))
    for (const auto& reason : json["not_for_release"]) stated.push_back(reason.get<std::string>());
  std::istringstream lines(run.note);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("- ")) noted.push_back(line.substr(2));
  if (stated != noted)
    s.wrong.push_back(fmt::format("{}: expected the certificate's {} reasons, found {}", kNote,
                                  stated.size(), noted.size()));
}

bool states_rows(const nlohmann::json& certificate) {
  const auto assumptions = certificate.value("assumptions", nlohmann::json::array());
  return std::ranges::any_of(assumptions, [](const nlohmann::json& a) {
    return a.is_string() && a.get<std::string>().starts_with("a row is ");
  });
}

/// Checks that a model of a named data set has the schema that the program has for this data set;
/// none if it is not a table.
void check_published_schema(const std::string& dataset, const ModelInputs& inputs,
                            verify::Statement& s) {
  std::optional<TableSchema> published;
  if (const std::string_view text = shipped_schema(dataset); !text.empty())
    published = parse_schema(text, dataset + ".toml");
  if (inputs.schema != published)
    s.wrong.push_back(fmt::format("schema: expected {} of {}, found {}",
                                  published ? "the published one" : "none", dataset,
                                  inputs.schema ? "another" : "none"));
}

/// Checks the certificate's assumptions about the inputs against the model: it must state none
/// about features if inputs are bytes of images, and none about images if inputs are numbers.
void check_numbers(const ModelInputs& inputs, const nlohmann::json& certificate,
                   verify::Statement& s) {
  for (const auto& assumption : certificate.value("assumptions", nlohmann::json::array())) {
    const auto text = assumption.get<std::string>();
    const bool of_numbers = text.starts_with("every feature ");
    const bool of_images =
        text.starts_with("every label is a class") || text.starts_with("every target is finite");
    if (inputs.pixels ? of_numbers : of_images)
      s.wrong.push_back("assumptions: expected those about " +
                        std::string(inputs.pixels ? "images" : "numbers") +
                        ", as the model takes, found '" + text + "'");
  }
}

/// Checks that each file in release/ is one that the certificate or the model requires, and that
/// none is missing.
verify::Statement check_files(const ReleasedRun& run) {
  verify::Statement s{
      .name = "files", .found = fmt::format("{}", fmt::join(run.files, ", ")), .wrong = {}};
  const auto json = nlohmann::json::parse(run.evidence.certificate);
  const verify::StatedNumbers c = verify::read_stated_numbers(run.evidence.certificate);
  std::map<std::string, bool> must = {{"privacy.json", true}, {RunFolder::kConfig, true}};
  if (json.contains("not_for_release")) must[kNote] = true;
  // Runs of earlier versions have no pages unless cudp report made them.
  for (const char* const page : kPages) must[page] = json.contains("pages");
  if (c.is_finished()) {
    must.insert(
        {{RunFolder::kModel, true}, {RunFolder::kMetrics, true}, {RunFolder::kCurves, false}});
    if (c.holdout && c.holdout->releases > 0) must[RunFolder::kHoldout] = true;
    if (c.test_set.starts_with("public")) {
      must[RunFolder::kEvaluation] = true;
      for (const char* const picture : kEvaluationPictures) must[picture] = false;
    }
    const std::string source = run.model().string();
    const TensorFile file = decode_safetensors(read_input(run.model()), source);
    const ModelInputs inputs = read_inputs(file, source);
    if (inputs.schema) must[RunFolder::kSchema] = true;
    // Named tables are published, so the meaning of their rows is known.
    const verify::Settings settings(run.evidence.settings);
    const bool is_named = settings.has("dataset") && is_named_dataset(settings.text("dataset"));
    if (inputs.schema && !is_named && !states_rows(json))
      s.wrong.emplace_back(
          "assumptions: expected a statement of what a row of the table is, found none");
    if (is_named) check_published_schema(settings.text("dataset"), inputs, s);
    check_numbers(inputs, json, s);
    const bool has_words = released_words(file, run.model()).has_value();
    if (has_words) must[kVocabularyFile] = true;
    check_private_inputs(has_words, settings, json, s);
    check_holdout(run, inputs, s);
    if (inputs.schema && fs::exists(run.release / RunFolder::kSchema) &&
        read_input(run.release / RunFolder::kSchema) != released_text(file, "schema", source))
      s.wrong.push_back(std::string(RunFolder::kSchema) +
                        ": expected the schema that the model carries, found another");
  }
  for (const auto& [name, there] : must)
    if (there && !std::ranges::binary_search(run.files, name))
      s.wrong.push_back(name + ": missing");
  for (const std::string& name : run.files)
    if (!must.contains(name))
      s.wrong.push_back(name + ": unexpected file: the certificate does not account for it");
  check_note(run, json, s);
  for (std::string& wrong : more_than_written(run)) s.wrong.push_back(std::move(wrong));
  for (std::string& wrong : data_differences(run)) s.wrong.push_back(std::move(wrong));
  return s;
}

/// Generates the report pages of release/ again, and compares their bytes.
verify::Statement check_pages(const ReleasedRun& run) {
  verify::Statement s{.name = "pages", .found = {}, .wrong = {}};
  const auto json = nlohmann::json::parse(run.evidence.certificate);
  const auto has = [&](const char* name) { return std::ranges::binary_search(run.files, name); };
  const bool stated = json.contains("pages");
  if (!stated && std::ranges::none_of(kPages, has)) {
    s.found = "none: an earlier version of the program made the run";
    s.is_checked = false;
    return s;
  }
  if (const auto format = json.value("pages", nlohmann::json(kPagesFormat));
      format != nlohmann::json(kPagesFormat)) {
    s.wrong.push_back(fmt::format(
        "pages: expected format {}, which this program makes, found {}: verify with the program "
        "that made them, or make pages elsewhere with cudp report {} --out DIR",
        kPagesFormat, format.dump(), run.release.string()));
    return s;
  }
  try {
    const Pages expected = make_pages(read_release_files(run.release));
    const std::pair<const char*, const std::string*> pages[] = {{kReportPage, &expected.report},
                                                                {kPrivacyText, &expected.privacy},
                                                                {kModelCard, &expected.card}};
    for (const auto& [name, content] : pages) {
      if (!has(name)) continue;  // "files" states what is missing
      const std::string found = read_input(run.release / name);
      const bool is_card = std::string_view(name) == kModelCard;
      if ((is_card ? split_card(found).body : found) != *content)
        s.wrong.push_back(std::string(name) +
                          ": expected the page that the other files give, found another; cudp "
                          "report makes it again");
    }
    s.found = "as the other files give them; the front matter of README.md is the user's";
  } catch (const InputError& e) {
    s.wrong.emplace_back(e.what());
  }
  return s;
}

}  // namespace

ReleasedRun open_released_run(const fs::path& folder) {
  check_not_of_tuning(folder);
  std::error_code ignored;
  const fs::path inside = folder / "release";
  ReleasedRun run;
  run.release = fs::is_directory(inside, ignored) ? inside : folder;
  if (fs::exists(run.release / "NO-PRIVACY.txt", ignored))
    throw InputError(folder.string() +
                     ": expected a run with a certificate, found one without privacy");
  if (!fs::is_regular_file(run.release / "privacy.json"))
    throw InputError(folder.string() +
                     ": expected a run folder with a certificate, or its release folder, found " +
                     found_for_run(folder));
  run.evidence.certificate = read_input(run.release / "privacy.json");
  try {
    run.status = verify::read_stated_numbers(run.evidence.certificate).status;
  } catch (const std::invalid_argument& e) {
    throw InputError((run.release / "privacy.json").string() + ": " + e.what());
  }
  // The release folder of a tuning that has not ended has a certificate, but no config.toml.
  if (run.status != "not finished" || fs::exists(run.release / "config.toml", ignored))
    run.evidence.settings = read_input(run.release / "config.toml");
  if (fs::is_regular_file(run.release / RunFolder::kMetrics, ignored))
    run.evidence.rows = read_input(run.release / RunFolder::kMetrics);
  const fs::path whole = fs::canonical(run.release / "privacy.json").parent_path();
  const fs::path ledger = RunFolder(whole.parent_path()).ledger();
  if (whole.filename() == "release" && fs::is_regular_file(ledger, ignored))
    run.evidence.ledger = read_input(ledger);
  if (fs::exists(run.release / RunFolder::kHoldout, ignored))
    run.evidence.holdout = read_input(run.release / RunFolder::kHoldout);
  if (fs::exists(run.release / kNote, ignored)) run.note = read_input(run.release / kNote);
  for (const auto& entry : fs::directory_iterator(run.release))
    run.files.push_back(entry.path().filename().string());
  std::ranges::sort(run.files);
  run.has_model = fs::is_regular_file(run.model());
  return run;
}

std::vector<verify::Statement> check_released_run(const ReleasedRun& run, verify::Bounds& bounds) {
  const std::string place = run.release.string();
  std::vector<verify::Statement> all;
  try {
    all = verify::check_released(run.evidence, bounds);
    // If the certificate's fields are wrong, no further check is possible.
    if (all.size() > 1) {
      all.push_back(check_tensors(run));
      all.push_back(check_files(run));
      all.push_back(check_pages(run));
      all.push_back(check_settings_file(run));
    }
  } catch (const std::invalid_argument& e) {
    throw InputError(place + ": " + e.what());
  } catch (const nlohmann::json::exception& e) {
    throw InputError(place + ": certificate: " + e.what());
  }
  return all;
}

}  // namespace cudp
