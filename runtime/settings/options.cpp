#include "runtime/settings/options.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/config/class_weights.hpp"
#include "runtime/config/fine_tuning.hpp"
#include "runtime/config/log_options.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/methods/registry.hpp"

namespace cudp {
namespace {

using namespace option_rows;
using Config = TrainConfig;

constexpr Range kClasses{.low = 2.0, .high = 256.0, .text = "a whole number of 2 to 256"};

std::string dataset_help() {
  std::string built_in, files;
  for (const NamedDataset& named : named_datasets()) {
    if (named.folder.empty())
      built_in += (built_in.empty() ? "" : " or ") + named.name;
    else
      files += named.name + ", ";
  }
  return built_in + " (built in), " + files +
         "or a path to a folder, a table, or a .npy or .npz file";
}

/// Returns a copy of the option `o` with a check: when its value is set, parse(text, place) is
/// called, which throws if the text is not valid. place: position of the value (flag, or file and
/// line), for the message.
template <class Parse>
Option parsed(Option o, const Parse& parse) {
  o.set = [set = o.set, parse](TrainConfig& c, const Value& v, const std::string& place) {
    set(c, v, place);
    static_cast<void>(parse(std::get<std::string>(v), place));
  };
  return o;
}

std::vector<Option> data_options() {
  return {
      text("dataset", "NAME", &Config::dataset, dataset_help().c_str()),
      machine(
          text("data-dir", "DIR", &Config::data_dir, "folder with the files of a named data set")),
      text("schema", "FILE", &Config::schema,
           "schema of a table given by path, or the name of a built-in one"),
      text("labels", "FILE", &Config::labels,
           ".npy file with the labels of a .npy file of examples"),
      parsed(text("input-shape", "SHAPE", &ArrayOptions::input_shape,
                  "shape of one example of a .npy or .npz file, CxHxW or HxW, if it holds rows of "
                  "numbers"),
             parse_input_shape),
      toggle("channels-last", &ArrayOptions::channels_last,
             "images of a .npy or .npz file are [N, H, W, C]; otherwise [N, C, H, W]"),
      parsed(
          text("arrays", "NAME,NAME", &ArrayOptions::arrays,
               "names of the two arrays of a .npz file, examples first; x,y or X,Y if not given"),
          parse_array_names),
      parsed(text("target-bounds", "LOW,HIGH", &ArrayOptions::target_bounds,
                  "predict a number: the labels of a .npy or .npz file are numbers between these "
                  "public bounds; numbers beyond count as the bound"),
             parse_target_bounds),
      text("test-data", "FILE", &Config::test_data,
           "test table for a table given by path, or test examples (.npy, .npz); without it no "
           "accuracy is measured"),
      text("test-labels", "FILE", &Config::test_labels,
           ".npy file with the labels of --test-data, if that is a .npy file"),
      parsed(text("test-arrays", "NAME,NAME", &ArrayOptions::test_arrays,
                  "names of the arrays of --test-data, if that is a .npz file; as --arrays if not "
                  "given"),
             parse_array_names),
      toggle(
          "test-data-is-public", &Config::test_data_is_public,
          "the test rows are public, so that accuracies may be published; otherwise they stay in "
          "the run's private folder"),
      number("holdout", "F", &Config::holdout, kInsideUnit,
             "share of the table's units of privacy (rows, if the schema states none) that is held "
             "out from training and tested on, each chosen by a secret coin"),
      needs("holdout", number("holdout-epsilon", "E", &Config::holdout_epsilon, kPositive,
                              "publish a noisy confusion matrix (noisy errors for a target) of the "
                              "held-out rows, once, at the end, for this epsilon")),
      needs("holdout", number("holdout-delta", "D", &Config::holdout_delta, kInsideUnit,
                              "probability that the guarantee of --holdout-epsilon fails")),
      number("holdout-threshold", "T", &ReportOptions::holdout_threshold, kUnit,
             "for two classes: figures of held-out rows are for predicting the second class if its "
             "probability is at least T; a public number that was not found on these rows"),
      toggle("size-is-public", &Config::size_is_public,
             "the number of training examples is public; otherwise a noisy one is used and paid "
             "for"),
      toggle("accept-private-bounds", &Config::accept_private_bounds,
             "scale numbers by bounds read from the private data (unsafe)"),
      choice("malformed", &Config::malformed, kMalformed,
             "cells of a table that cannot be read: refuse the table, which reveals that there are "
             "some, or treat each as a missing value"),
      integer("classes", "N", &Config::classes, kClasses,
              "number of classes in a folder of images, 10 if not given, or in a .npy or .npz "
              "file; never read from the labels"),
      choice("normalise", &Config::normalise, kNormalises,
             "normalise each example by itself: unit divides its numbers by their L2 norm, layer "
             "subtracts their mean and divides by their standard deviation"),
      choice("features", &Config::features, kFeatures,
             "what the model sees of an example: none (the example itself), scatter (ScatterNet, "
             "for images) or pca (principal components, paid for from the budget)"),
      integer("feature-groups", "N", &Config::feature_groups, kCountOrZero,
              "scatter: groups of channels normalised within each example's features, 0: none"),
      toggle("feature-standardise", &Config::feature_standardise,
             "scatter: standardise channels by a noisy mean and variance, paid for from the "
             "budget, instead of feature-groups"),
      number("feature-second-order", "S", &Config::feature_second_order, kUnitPositive,
             "standard deviation of standardised channels of order 2, which are the most numerous "
             "and the weakest; the others get 1"),
      integer("feature-dimensions", "N", &Config::feature_dimensions, kCount,
              "pca: number of components"),
      toggle("feature-whiten", &Config::feature_whiten,
             "pca: scale components to equal noisy variance, which spends no more privacy"),
      instead_of(
          "feature-noise",
          number(
              "feature-share", "S", &Config::feature_share, kInsideUnit,
              "share of the budget for the release that features need, measured by 1 / sigma^2")),
      instead_of("feature-noise", number("feature-sigma", "S", &Config::feature_sigma, kPositive,
                                         "noise multiplier of the release that features need: "
                                         "pca's covariance or the channels' moments")),
      machine(text("feature-cache", "DIR", &Config::feature_cache,
                   "folder where computed features are kept, readable by their owner only; auto "
                   "(~/.cache/cudp) or none")),
  };
}

constexpr Range kTokens{.low = 1.0, .high = 65535.0, .text = "a whole number of 1 to 65535"};

std::vector<Option> text_options() {
  return {
      integer("tokens", "T", &TextOptions::tokens, kTokens, "maximum number of words of a text"),
      choice("keep", &TextOptions::keep, kKeeps,
             "words that are kept of a longer text: the last or the first ones"),
      choice("tokenizer", &TextOptions::tokenizer, kTokenizers,
             "words (runs of a-z, 0-9 and ' in lower case) or wordpiece (BERT's, uncased)"),
      text("vocabulary", "FILE", &TextOptions::vocabulary,
           "list of words, one a line (a tab and a count may follow); without one the embedding's "
           "own"),
      integer("vocabulary-size", "N", &TextOptions::vocabulary_size, kCountOrZero,
              "use the first N words only, 0: all"),
      toggle("vocabulary-is-public", &TextOptions::vocabulary_is_public,
             "no private text decided the list of words; otherwise the certificate states that one "
             "may have"),
      text("embedding", "FILE", &TextOptions::embedding,
           "public vectors of words: glove, minilm, a .safetensors file or one in GloVe's text "
           "format"),
      text("embedding-tensor", "NAME", &TextOptions::embedding_tensor,
           "the matrix of a .safetensors file that has several"),
      integer("embedding-dims", "D", &TextOptions::embedding_dims, kCountOrZero,
              "reduce the vectors to their first D principal components, 0: leave them"),
      toggle("store-embedding", &TextOptions::store_embedding,
             "store the vectors in the released model, which then needs no other file"),
  };
}

std::vector<Option> model_options() {
  return {
      text("model", "NAME", &Config::model,
           "cnn, cifar-cnn, scatter-cnn, scatter-cifar-cnn, scatter-linear, mlp, logistic, linear, "
           "svm, "
           "imdb-rnn, imdb-lstm, imdb-mean, sentences-lstm, or a .toml file of layers"),
      text("activation", "NAME", &Config::activation,
           "kind of the model's `activation` layers: relu, tanh or tempered-sigmoid"),
      text("init", "FILE", &FineTuning::init,
           "start from the public weights of a .safetensors file, matched by name; what the model "
           "has and the file lacks is initialised at random"),
      text("freeze", "NAME,...", &FineTuning::freeze,
           "leave these layers as --init gives them: names of layers or tensors, with * for any "
           "characters; they take no part in gradients, clipping and noise"),
      one_of(text("loss", "NAME", &Config::loss,
                  "loss of a target, the number that a regression predicts: squared, if not given, "
                  "or huber"),
             {"squared", "huber"}),
      number("huber-delta", "D", &Config::huber_delta, kPositive,
             "huber: error beyond which the loss is linear, in the target's own unit; a tenth of "
             "its range, if not given"),
  };
}

std::vector<Option> privacy_options() {
  return {
      instead_of("noise", number("epsilon", "E", &Config::epsilon, kPositive,
                                 "privacy budget; the noise is calibrated to it")),
      number("delta", "D", &Config::delta, kInsideUnit, "probability that the guarantee fails"),
      instead_of("noise", number("sigma", "S", &Config::sigma, kPositive,
                                 "noise multiplier: standard deviation / sensitivity")),
      choice("accountant", &Config::accountant, kAccountants,
             "accountant that bounds epsilon: pld (or any bound that is lower), rdp only, or "
             "advanced composition, for comparison"),
      number("clip", "C", &Config::clip_norm, kPositive,
             "clipping norm: bound on the norm of one example's gradient; a method may have its "
             "own scale or default"),
      choice("clipping", &Config::clipping, kClippings,
             "how gradients are bounded: flat, per-layer or automatic (normalised)"),
      choice("sampling", &Config::sampling, kSamplings,
             "how batches are drawn: poisson (each example in each step with probability batch / "
             "examples) or allocation (each example in exactly one step of each epoch, chosen at "
             "random; needs a little less noise)"),
      choice("rng", &Config::rng, kGenerators,
             "generator of sampling and noise: chacha20 or philox"),
      integer(
          "seed", "S", &Config::seed, kWhole,
          "reproducible run; anyone who knows the seed can subtract the noise, so it is not for "
          "release"),
      toggle("unsafe-diagnostics", &Config::unsafe_diagnostics,
             "show and keep training loss, clipped share and norms: not private"),
      toggle("allow-weak-privacy", &Config::allow_weak_privacy,
             "train with epsilon above 200 or delta of 0.1 and more, which guarantee next to "
             "nothing; the certificate states it"),
      toggle(
          "fresh-noise-allowed", &Config::fresh_noise_allowed,
          "if noise differs from step to step: use a filter from the start, with a little more "
          "noise, so that the run can resume if its key is lost; other runs can resume without it"),
  };
}

std::string method_help() {
  std::string list;
  const std::vector<std::string> names = method_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return "training method: " + list;
}

/// Returns the option "tuned", which marks settings that `cudp tune` chose. It is written to a file
/// only if it is true.
Option tuned_option() {
  Option o = origin(toggle("tuned", &Config::tuned,
                           "written by cudp tune: the guarantee covers the choice of these "
                           "settings; without effect on a training"));
  o.get = [](const Config& c) { return c.tuned ? std::optional<Value>(true) : std::nullopt; };
  return o;
}

std::vector<Option> training_options() {
  return {
      one_of(text("method", "NAME", &Config::method, method_help().c_str()), method_names()),
      origin(text("preset", "NAME", &Config::preset,
                  "tuned settings to start from; if not given, those for the data set")),
      tuned_option(),
      integer("batch", "B", &Config::batch, kCount, "expected batch size"),
      instead_of("length",
                 integer("epochs", "N", &Config::epochs, kCount, "length of the training")),
      instead_of("length",
                 integer("steps", "N", &Config::steps, kCount, "length of the training, in steps")),
      number("lr", "LR", &Config::lr, kPositive,
             "learning rate; 0.001 with adam and adamw if not given"),
      choice("optimizer", &Config::optimizer, kOptimizers,
             "sgd, momentum, nesterov, adam or adamw"),
      number("momentum", "M", &Config::momentum, kBelowOne,
             "momentum, for optimizers momentum and nesterov"),
      number("beta1", "B", &Config::beta1, kBelowOne, "of adam and adamw"),
      number("beta2", "B", &Config::beta2, kBelowOne, "of adam and adamw"),
      number("weight-decay", "W", &Config::weight_decay, kNotNegative,
             "weight decay: pulls weights towards zero"),
      choice("schedule", &Config::schedule, kSchedules,
             "learning rate over time: constant, step, cosine, polynomial, square-root (lr - a "
             "sqrt(t), nearly 0 at the end) or adaptive (for adp-sgd)"),
      integer("decay-every", "N", &Config::decay_every, kCount, "step: epochs between decays"),
      number("decay-factor", "F", &Config::decay_factor, kInsideUnit, "step: factor of a decay"),
      number("final-lr", "F", &Config::final_lr, kUnit, "cosine: share of lr left at the end"),
      number("poly-a", "A", &Config::poly_a, kPositive,
             "polynomial: lr / sqrt(a + c t), t in steps"),
      number("poly-c", "C", &Config::poly_c, kNotNegative, "polynomial: see poly-a"),
      integer("warmup", "N", &Config::warmup, kCountOrZero, "steps of linear warm-up"),
      number("ema", "D", &Config::ema, kBelowOne,
             "release an exponential average of the weights with this decay; 0: the last weights"),
      class_weights_option(),
  };
}

/// Returns the option --device. A CUDA device may be given with its index, as in "cuda:1"; the
/// index is not stored with the run's settings.
Option device_option() {
  Option o = choice("device", &Config::device, kDevices, "auto, cpu or cuda; cuda:1 for another");
  o.set = [named = o.set](TrainConfig& c, const Value& v, const std::string& place) {
    const auto* const text = std::get_if<std::string>(&v);
    const std::string cuda = "cuda:";
    if (text == nullptr || !text->starts_with(cuda)) return named(c, v, place);
    const auto number = read_number<int>(text->substr(cuda.size()));
    if (!number || *number < 0)
      throw InputError(place +
                       ": expected auto, cpu, cuda, or cuda and a device's number (cuda:1), "
                       "found \"" +
                       *text + "\"");
    c.device = Device::cuda;
    c.device.number = *number;
  };
  return o;
}

constexpr Range kRanks{.low = 1.0, .high = 256.0, .text = "a whole number of 1 to 256"};

std::vector<Option> machine_options() {
  return {
      device_option(),
      choice(
          "precision", &Config::precision, kPrecisions,
          "matrix products on CUDA: tf32 (tensor cores, for layers that gain from it) or fp32; the "
          "CPU and small networks without convolutions use fp32 only, and the run's config states "
          "which was used"),
      choice("evaluate-with", &Config::evaluate_with, kEvaluateWith,
             "convolutions, LSTMs and GRUs of the training's evaluations on CUDA: ours, or cudnn "
             "if that library is installed; accuracies may differ in the last digit, and the run's "
             "config states which was used"),
      machine(choice("rows-in", &Config::rows_in, kRowsIn,
                     "where the features of tables, arrays and IDX images are kept: in memory, or "
                     "in a file from which each step copies the rows that it draws; "
                     "auto: in a file if they would take more than half of the available memory. "
                     "The result does not depend on it")),
      machine(integer("threads", "N", &Config::threads, kThreads,
                      "CPU threads, 0 for every core; the result does not depend on it")),
      machine(
          integer("micro-batch", "N", &Config::micro_batch, kCountOrZero,
                  "examples processed at a time, 0 to choose; the result does not depend on it")),
      command(integer("ranks", "N", &Config::ranks, kRanks,
                      "processes that share the examples, on this node; the result does not depend "
                      "on it")),
      command(toggle("share-device", &Config::share_device,
                     "let several ranks of a node train on one CUDA device")),
      command(choice("sum-by", &Config::sum_by, kSumBy,
                     "how the ranks' sums are added up on CUDA: by nccl inside the recorded step, "
                     "or by the host between two recordings; auto: nccl if all ranks can use it. "
                     "The result does not depend on it")),
      command(number("rank-timeout", "S", &Config::rank_timeout, kPositive,
                     "seconds after which a rank that others wait for counts as lost")),
  };
}

std::vector<Option> output_options() {
  return {
      command(text("config", "FILE", &Config::config, "TOML file with these keys")),
      command(text("out", "DIR", &Config::out, "run folder; runs/DATASET-MODEL-TIME if not given")),
      command(text("resume", "DIR", &Config::resume, "continue the interrupted run in DIR")),
      command(text("resume-or-start", "DIR", &Config::resume_or_start,
                   "continue the run in DIR if there is one, else start it there: the same command "
                   "for every attempt of a job that may be interrupted")),
      command(toggle(
          "fresh-noise", &Config::fresh_noise,
          "resume with a new random key, and pay again for the steps since the last checkpoint: "
          "needed if data, program or processor differ from those that the run began with")),
      machine(integer("eval-every", "N", &Config::eval_every, kCountOrZero,
                      "epochs between test evaluations; 0: only at the end")),
      one_of(text("metric", "NAME", &ReportOptions::metric,
                  "metric of the test rows in curves.png: accuracy, balanced-accuracy, auc or "
                  "average-precision; if not given, the schema's, or else one that fits the class "
                  "shares of public test rows"),
             {std::begin(kSchemaMetrics), std::end(kSchemaMetrics)}),
      text("license", "NAME", &ReportOptions::license,
           "licence of the released model, as model hubs name it (mit, cc-by-4.0): for the front "
           "matter of the model card"),
      machine(text("metrics-file", "FILE", &ReportOptions::metrics_file,
                   "keep the progress in this file for a monitoring system, in the textfile format "
                   "of Prometheus' node exporter")),
      machine(integer("checkpoint-every", "N", &Config::checkpoint_every, kCountOrZero,
                      "steps between checkpoints; 0: about every 20 seconds")),
      command(text("tensorboard", "DIR", &LogOptions::tensorboard,
                   "also write what metrics.jsonl has into DIR, as events for TensorBoard")),
      command(toggle("json", &Config::json, "print only the result, as JSON, on stdout")),
      command(toggle("quiet", &Config::quiet, "no progress, only warnings")),
      command(toggle("log-json", &LogOptions::json,
                     "log on stderr and in private/log.txt as lines of JSON: time, level, "
                     "message")),
      command(toggle("timings", &Config::timings,
                     "show at the end how long each phase of the run took; if the number of "
                     "training examples is private, on a terminal and in private/log.txt only")),
  };
}

/// Adds the option `o` to `all`: after the option with the key o.listed_after or, if there is none,
/// at the end, under the heading `group`.
void add_row(std::vector<Option>& all, const std::string& group, Option o) {
  if (o.listed_after.empty()) {
    o.group = group;
    all.push_back(std::move(o));
    return;
  }
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const Option& other) {
    return other.key == o.listed_after || other.listed_after == o.listed_after;
  });
  if (last == all.rend()) throw std::logic_error(o.key + ": belongs with no option before it");
  o.group = last->group;
  all.insert(last.base(), std::move(o));
}

}  // namespace

const std::vector<Option>& train_options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> all;
    const auto add = [&](const char* group, std::vector<Option> rows) {
      for (Option& o : rows) add_row(all, group, std::move(o));
    };
    add("Data", data_options());
    add("Text", text_options());
    add("Model", model_options());
    add("Privacy", privacy_options());
    add("Training", training_options());
    for (const MethodEntry& method : methods()) add(method.option_group.c_str(), method.options);
    add("Machine", machine_options());
    add("Output", output_options());
    return all;
  }();
  return table;
}

const Option* find_option(const std::vector<Option>& options, std::string_view key) {
  for (const Option& o : options)
    if (o.key == key) return &o;
  return nullptr;
}

const Option* find_option(std::string_view key) { return find_option(train_options(), key); }

std::vector<std::string> option_keys() {
  std::vector<std::string> keys;
  for (const Option& o : train_options()) keys.push_back(o.key);
  return keys;
}

}  // namespace cudp
