#include "runtime/training/prepare.hpp"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <span>
#include <sstream>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "kernels/features/scatter.hpp"
#include "models/freeze.hpp"
#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/config/class_weights.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/given_arrays.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/kept_table.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/make_network.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/results/predictions.hpp"
#include "runtime/results/released_text.hpp"
#include "runtime/training/loaded_data.hpp"
#include "runtime/training/plan_ahead.hpp"

namespace cudp {
namespace {

/// Names of models in other packages, such as scikit-learn, each with the name that cudp has for
/// the model. An error message on an unknown model suggests these.
constexpr Synonym kModels[] = {
    {"logreg", "logistic"},
    {"logistic-regression", "logistic"},
    {"logisticregression", "logistic"},
    {"lr", "logistic"},
    {"softmax", "logistic"},
    {"svc", "svm"},
    {"linearsvc", "svm"},
    {"linear-svm", "svm"},
    {"mlpclassifier", "mlp"},
    {"neural-network", "mlp"},
    {"nn", "mlp"},
    {"convnet", "cnn"},
    {"lenet", "cnn"},
    {"resnet", "cifar-cnn"},
    {"vgg", "cifar-cnn"},
    {"lstm", "imdb-lstm"},
    {"rnn", "imdb-rnn"},
};

std::string default_model(Features features, const Dataset& data, const Shape& shape) {
  if (data.has_targets() && !data.is_text()) return "linear";
  if (data.is_text()) return data.vectors != nullptr ? "imdb-rnn" : "sentences-lstm";
  if (features == Features::scatter)
    return shape.channels == kScatterChannels ? "scatter-cnn" : "scatter-cifar-cnn";
  return shape.height > 1 || shape.width > 1 ? "cnn" : "logistic";
}

std::vector<Dataset*> parts_of(const TrainConfig& config, DataSplit& data) {
  if (!has_test_rows(config, data)) return {&data.train};
  return {&data.train, &data.test};
}

/// Throws an error if --holdout is given and the data already have test rows of their own.
void check_holdout(const DataSplit& data) {
  if (!data.held_out)
    throw InputError("--holdout: expected data without test rows, found some in " + data.name);
  ensure(!data.test_is_public && !data.size_is_public,
         "held-out rows, and their number, are private");
}

/// Returns the device to train on. Throws InputError if the method cannot use the requested one
/// (`asked`).
Device device_for(const MethodEntry& method, Device asked) {
  if (!method.cpu_only) return asked;
  if (asked == Device::cuda)
    throw InputError("--device: expected cpu with --method " + method.name + ", found cuda");
  return Device::cpu;
}

/// Returns the device on which this rank (process) trains: the ranks of a node use its CUDA devices
/// in turn. Throws InputError if several ranks would share a device without --share-device.
Device device_of_rank(Device device, bool may_share, const Ranks& ranks) {
  if (ranks.alone() || device == Device::cpu) return device;
  const auto devices = static_cast<int>(cuda_devices().size());
  if (devices == 0) return device;  // choose_backend reports this, or uses the CPU
  if (ranks.local_size() > devices && !may_share)
    throw InputError(
        fmt::format("--ranks: expected at most {} on this node, one a CUDA device (--share-device "
                    "lets several share one, --device cpu takes none), found {}",
                    devices, ranks.local_size()));
  device.number = ranks.local_rank() % devices;
  return device;
}

/// Opens the backend (CPU or CUDA) in another thread while data are read, because finding and
/// opening a CUDA device takes as long as reading a small data set.
class BackendChoice {
 public:
  BackendChoice(Device device, Timings& timings) {
    if (device == Device::cpu || !built_with_cuda()) {
      chosen_ = made_up(choose_backend(device));
      return;
    }
    chosen_ = std::async(std::launch::async, [device, &timings] {
      const ThreadClock clock;
      Backend backend = choose_backend(device);
      // The engine reports later why the device cannot be used.
      try {
        if (backend.name == "cuda") open_cuda_device(device.number);
      } catch (const Error&) {
      }
      timings.add_beside("CUDA device", clock.spent());
      return backend;
    });
  }

  /// Waits for the backend and returns it. Throws InputError if the requested device does not
  /// exist.
  Backend get() { return chosen_.get(); }

  /// Throws the error with which opening the backend failed, if it has failed by now or fails
  /// within 20 ms. Called before the data are read, so that the user sees such an error at once.
  void rethrow_if_refused() {
    if (chosen_.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) return;
    chosen_ = made_up(chosen_.get());
  }

  /// Returns work(), e.g. the result of reading the data. If both work() and opening the backend
  /// fail, throws the backend's error.
  template <class Work>
  auto meanwhile(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (...) {
      (void)get();
      throw;
    }
  }

 private:
  static std::future<Backend> made_up(Backend backend) {
    std::promise<Backend> known;
    known.set_value(std::move(backend));
    return known.get_future();
  }

  std::future<Backend> chosen_;
};

/// Throws InputError if settings for regression are given but the data have classes, or if the data
/// have regression targets but the settings are for classes.
void check_target(const TrainConfig& config, const MethodEntry& method, const Dataset& train) {
  const std::string& metric = config.of<ReportOptions>().metric;
  if (train.has_targets() && !metric.empty())
    throw InputError("--metric: expected with classes only, found " + metric +
                     " with a target, whose RMSE is shown");
  if (!train.has_targets()) {
    if (!config.loss.empty())
      throw InputError("--loss: expected with a target only, found " + config.loss +
                       " with classes");
    if (config.huber_delta)
      throw InputError("--huber-delta: expected with a target only, found it with classes");
    return;
  }
  if (method.linear_model)
    throw InputError(
        "--method: expected one that clips each example's gradient with a target, "
        "found " +
        method.name + ", whose proof is of losses of two classes");
  if (config.model == "logistic")
    throw InputError(
        "--model: expected linear, mlp or a .toml file of layers with a target, found "
        "logistic");
  if (config.huber_delta && config.loss != name_of(Loss::huber))
    throw InputError("--huber-delta: expected with --loss huber only, found it with squared");
}

/// Sets the regression loss in `spec`. Its threshold, --huber-delta, is converted to the scale of
/// targets in [-1, 1], i.e. divided by half the width of the target's bounds.
void choose_loss(const TrainConfig& config, const TargetBounds& bounds, ModelSpec& spec) {
  if (config.loss != name_of(Loss::huber)) return;
  const double delta = config.huber_delta.value_or(0.1 * (bounds.max - bounds.min));
  const auto scaled = static_cast<float>(bounds.scaled_distance(delta));
  if (!(scaled > 1e-6f))
    throw InputError(
        fmt::format("--huber-delta: expected more than a millionth of half the "
                    "target's range, {:.6g}, found {:.6g}",
                    0.5 * (bounds.max - bounds.min), delta));
  spec.loss = Loss::huber;
  spec.huber = scaled;
}

void check_linear(const MethodEntry& method, const Network& n) {
  const bool linear = n.layers.size() == 1 && n.parameters.size() == 2 && n.outputs == 1;
  if (!linear || n.spec.loss == Loss::softmax_cross_entropy)
    throw InputError("--model: expected logistic or svm, and two classes, with --method " +
                     method.name + ", found " + n.spec.name + " and " + std::to_string(n.classes));
}

/// Throws InputError if units of privacy have several rows but the method, or its accountant, is
/// proved for single rows only.
void check_unit(const MethodEntry& method, const TrainConfig& config, std::uint64_t rows) {
  if (rows == 1) return;
  std::string why(method.units_unsupported);
  if (method.gives_privacy && config.accountant == privacy::AccountantKind::advanced)
    why = "advanced composition is proved for single rows only";
  if (why.empty()) return;
  throw InputError("--method " + method.name + ": expected max_rows = 1 in the schema, since " +
                   why + ", found " + std::to_string(rows));
}

/// Throws InputError if layers have their own learning rates and the method cannot use them.
void check_rates(const MethodEntry& method, const Network& network) {
  if (has_own_rates(network) && (method.linear_model || method.adapts_step_size))
    throw InputError("--model: expected no lr_scale with --method " + method.name +
                     ", whose step sizes are those of all layers together, found one");
}

/// Reads the pre-trained weights that training starts from (--init), and freezes layers (--freeze).
/// stored: the weights in the checkpoint of a resumed run, used instead of the file; or null.
void take_public_weights(Experiment& e, const PublicWeights* stored, Reporter& reporter) {
  const FineTuning& settings = e.config.of<FineTuning>();
  if (settings.init.empty()) return;
  if (stored != nullptr) {
    freeze_again(settings, *stored, e.network);
    e.initial = *stored;
    return;
  }
  e.initial = start_from_public_weights(settings, e.network);
  for (const std::string& note : e.initial->notes) reporter.info(note);
}

/// Returns the setting that requires all rows to be in memory, as text for a message. Returns "" if
/// there is none; rows may then stay in a file, from which each step copies the rows that it draws.
std::string in_memory_part(const TrainConfig& config, const MethodEntry& method) {
  if (method.linear_model) return "--method " + method.name;
  if (config.features != Features::none)
    return "--features " + std::string(name_of(config.features));
  if (config.normalise != Normalise::none)
    return "--normalise " + std::string(name_of(config.normalise));
  return "";
}

/// Returns the nearest existing folder above a run's folder; the run will be on the same disk.
std::filesystem::path folder_above(const std::string& run) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(run.empty() ? "runs" : run, error);
  while (!std::filesystem::is_directory(folder, error) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

/// Returns whether rows are kept in memory or in a file. Throws InputError if the user requests a
/// file and that is not possible.
RowStorage storage_of(const TrainConfig& config, const MethodEntry& method) {
  if (config.rows_in == RowsIn::memory) return {};
  const std::string part = in_memory_part(config, method);
  if (part.empty())
    return {.where = config.rows_in,
            .folder = folder_above(config.resume.empty() ? config.out : config.resume)};
  if (config.rows_in == RowsIn::file)
    throw InputError("--rows-in: expected auto or memory with " + part +
                     ", which needs all rows in memory, found file");
  return {};
}

/// Returns the random draws that decide which rows are held out, made with `key`; nullopt if none
/// are held out.
std::optional<HoldOutDraws> holdout_draws(const TrainConfig& config,
                                          const std::optional<SharedKey>& key) {
  if (!config.holdout) return {};
  return HoldOutDraws(*key, *config.holdout);
}

/// Returns the concatenation of all ranks' arrays on rank 0.
template <class T>
std::vector<T> joined(Ranks& ranks, const char* what, std::span<const T> mine) {
  std::vector<T> all;
  for (const std::string& part : ranks.gather(what, std::as_bytes(mine))) {
    const std::size_t at = all.size();
    all.resize(at + part.size() / sizeof(T));
    std::memcpy(all.data() + at, part.data(), part.size());
  }
  return all;
}

/// Collects the labels and targets of the whole test set on rank 0. Each rank has read its own
/// range of the data.
void gather_answers(const DataSplit& data, Experiment& e) {
  for (const Dataset* const part : {&data.train, &data.test})
    ensure(part->whole > 0 || part->size() == 0, "a rank must read its range alone");
  e.test_labels = joined<std::uint8_t>(*e.ranks, "labels of the test set", data.test.labels);
  e.test_targets = joined<float>(*e.ranks, "targets of the test set", data.test.targets);
}

/// Throws InputError if --store-embedding is set and a trained tensor has the name kStoredVectors,
/// under which the embedding is stored.
void check_stored_vectors(const TrainConfig& config, const Network& n) {
  if (!config.of<TextOptions>().store_embedding) return;
  for (const ParameterTensor& t : n.parameters)
    if (t.name == kStoredVectors)
      throw InputError("--store-embedding: expected no trained tensor named " + t.name +
                       ", which is the name of the vectors that are stored, found one in " +
                       config.model + "; give its layer another name");
}

}  // namespace

RandomKey split_key_of(const TrainConfig& config) {
  return config.seed ? split_key_of_seed(static_cast<std::uint64_t>(*config.seed)) : make_key();
}

FeatureSettings feature_settings(const Experiment& e) {
  FeatureSettings s = feature_settings(e.config);
  s.ranks = e.ranks;
  return s;
}

std::string read_model(const std::string& name) {
  if (const std::string_view text = builtin_model(name); !text.empty()) return std::string(text);
  if (!name.ends_with(".toml"))
    throw InputError("--model: expected a known model or a .toml file, found '" + name + "'; " +
                     nearest_or_all(name, model_names(), kModels));
  std::ifstream in(name);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw InputError(name + ": expected a readable model description, found none");
  return text.str();
}

DataSplit read_data(const TrainConfig& config, const std::optional<SharedKey>& split_key,
                    const Ranks& ranks, const RowStorage& storage, Busy* progress) {
  return load_data(
      {.dataset = config.dataset,
       .dir = config.data_dir,
       .schema = config.schema,
       .labels_path = config.labels,
       .test_path = config.test_data,
       .test_labels_path = config.test_labels,
       .arrays = config.of<ArrayOptions>(),
       .given = config.of<ArraysInUse>().arrays,
       .test_is_public = config.test_data_is_public,
       .accept_private_bounds = config.accept_private_bounds,
       .malformed = config.malformed,
       .size_is_public = config.size_is_public || !method_entry(config.method).gives_privacy,
       .classes = static_cast<int>(config.classes.value_or(0)),
       .text = config.of<TextOptions>(),
       .kept = storage.where == RowsIn::memory ? nullptr : config.of<KeptTableInUse>().table,
       .storage = storage,
       .share = {ranks.rank(), ranks.size()},
       .holdout = holdout_draws(config, split_key),
       .progress = progress});
}

Experiment prepare(const TrainConfig& config, Reporter& reporter, const std::string& known_model,
                   std::optional<SharedKey> split_key, Ranks& ranks, const PublicWeights* initial) {
  const MethodEntry& method = method_entry(config.method);
  const Device device =
      device_of_rank(device_for(method, config.device), config.share_device, ranks);
  const RowStorage storage = storage_of(config, method);
  reporter.timings().enter("data and device");
  Experiment e;
  const DataInUse& in_use = config.of<DataInUse>();
  LoadedData* const loaded = in_use.loaded.get();
  const std::shared_ptr<privacy::AccountantMemo>& shared = config.of<MemoInUse>().memo;
  e.memo = loaded != nullptr   ? loaded->memo
           : shared != nullptr ? shared
                               : std::make_shared<privacy::AccountantMemo>();
  BackendChoice opened(device, reporter.timings());
  opened.rethrow_if_refused();
  const std::string model = opened.meanwhile([&] {
    return known_model.empty() && !config.model.empty() ? read_model(config.model) : known_model;
  });
  e.ahead = plan_ahead(config, e.memo, reporter.shared_timings());
  if (config.holdout && !split_key) split_key.emplace(split_key_of(config));
  DataSplit data = opened.meanwhile([&] {
    if (loaded != nullptr) return in_use.takes ? std::move(loaded->data) : loaded->data;
    Busy reading("reading " + shown(config.dataset), reporter.shown_work());
    return read_data(config, split_key, ranks, storage, &reading);
  });
  const Backend backend = opened.get();
  reporter.timings().enter("features and model");
  check_unit(method, config, data.unit_rows);
  if (config.holdout) check_holdout(data);
  e.ranks = &ranks;
  if (!ranks.alone()) gather_answers(data, e);
  if (data.train.is_text() && config.features != Features::none)
    throw InputError("--features: expected none with texts, found " +
                     std::string(name_of(config.features)));
  check_target(config, method, data.train);
  e.inputs = inputs_of(data);
  e.inputs.array_target =
      parse_target_bounds(config.of<ArrayOptions>().target_bounds, "--target-bounds");
  if (loaded == nullptr || !loaded->has_features)
    for (Dataset* const part : parts_of(config, data))
      make_features(*part, feature_settings(config), backend, reporter);

  e.config = config;
  e.data = std::move(data);
  if (config.holdout) e.split_key = std::move(split_key);
  e.model_text = model;
  const Shape shape = released_shape(e.data.train, feature_settings(config));
  if (config.model.empty()) {
    e.config.model = default_model(config.features, e.data.train, shape);
    e.model_text = read_model(e.config.model);
  }
  e.network = make_network(e.model_text, e.config.model, config.activation, shape,
                           e.data.train.classes, text_shape(e.data.train));
  if (const auto bounds = e.inputs.target()) choose_loss(config, *bounds, e.network.spec);
  check_rates(method, e.network);
  take_public_weights(e, initial, reporter);
  check_class_weights(config.class_weights, e.network.classes);
  if (config.of<ReportOptions>().holdout_threshold)
    check_threshold("--holdout-threshold", e.network.spec.loss, e.network.outputs);
  const bool size_is_public = e.data.size_is_public;
  // Lines about the device's capacity reveal the number of rows. If that number is private, only
  // the run's owner sees these lines.
  e.backend = choose_backend(device, [&reporter, size_is_public](const std::string& s) {
    size_is_public ? reporter.info(s) : reporter.report_to_owner(s);
  });
  e.config.device = e.backend.name == "cuda" ? Device::cuda : Device::cpu;
  e.config.precision =
      e.backend.precision(e.network, config.precision, method.transforms_gradients);
  if (config.evaluate_with == EvaluateWith::cudnn) {
    if (e.backend.name != "cuda")
      throw InputError(
          "--evaluate-with: expected ours, since cuDNN needs a CUDA device and this run is made on "
          "the CPU, found cudnn");
    require_cudnn();
  }
  if (e.config.precision == Precision::tf32) e.backend.arithmetic_name += ", tf32";
  if (e.backend.library_arithmetic)
    e.backend.arithmetic_name +=
        e.backend.library_arithmetic(e.network, config.features == Features::scatter);
  if (method.linear_model) check_linear(method, e.network);
  check_stored_vectors(e.config, e.network);
  if (method.fit != nullptr) method.fit(e.config, e.network, e.data.train);
  return e;
}

privacy::Ledger ledger_of_size(double noise, const std::optional<privacy::CountSplit>& split) {
  privacy::Ledger ledger;
  if (split)
    ledger.count_first(*split);
  else if (noise > 0.0)
    ledger.charge({privacy::Gaussian{noise}, 1});
  return ledger;
}

privacy::Ledger first_ledger(const TrainConfig& config, const TrainingSize& size,
                             const Method& method, const privacy::Ledger& counted) {
  privacy::Ledger ledger;
  if (counted.split()) ledger.count_first(*counted.split());
  if (const auto budget = method.filter()) ledger.limit(*budget);
  for (const privacy::Release& r : releases_before(config, size, counted.split())) ledger.charge(r);
  for (const privacy::Release& r : method.releases_at_start()) ledger.charge(r);
  return ledger;
}

void release_features(Experiment& e, const TrainingSize& size, Gate& gate) {
  // Probability with which the bound on the number of examples may fail. The privacy plan uses the
  // same bound with the same probability.
  const double failure = size.is_public() ? 1.0 : 0.5 * kFailureShare * *e.config.delta;
  show_features(e, release_for_features(e.data.train, feature_settings(e), size.value,
                                        size.max_examples(failure),
                                        feature_noise(e.config, size.unit_rows), gate));
}

void show_features(Experiment& e, std::vector<float> released) {
  e.feature_release = std::move(released);
  for (Dataset* const part : parts_of(e.config, e.data))
    apply_release(*part, feature_settings(e.config), e.feature_release, e.data.name);
}

}  // namespace cudp
