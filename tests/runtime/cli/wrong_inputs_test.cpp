// What a new user types, and the sentence that answers it.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// A folder with a table, its schema, and files that are not what they seem. Paths are relative to
/// it, as the sentences are.
class WrongInputs : public testing::Test {
 protected:
  WrongInputs() {
    fs::create_directory(place());
    write("p.csv", "age,sex,died\n50,f,no\n60,m,yes\n");
    write("p.toml", kSchema);
    write("semicolon.csv", "age;sex;died\n50;f;no\n60;m;yes\n");
    write("unknown.csv", "age,sex,died,weight\n50,f,no,70\n60,m,yes,80\n");
    write("short.csv", "age,sex,died\n50,f,no\n60,m\n");
    write("word.csv", "age,sex,died\n50,f,no\nold,m,yes\n");
    write("value.csv", "age,sex,died\n50,f,no\n60,x,yes\n");
    write("label.csv", "age,sex,died\n50,f,no\n60,m,maybe\n");
    write("bounds.toml", std::string("name = \"p\"\ncolumns = [\n"
                                     "  {name = \"age\", kind = \"numeric\"},\n"
                                     "  {name = \"sex\", kind = \"categorical\", values = [\"f\", "
                                     "\"m\"]},\n"
                                     "  {name = \"died\", kind = \"label\", values = [\"no\", "
                                     "\"yes\"]},\n]\n"));
    write("kind.toml", "name = \"p\"\ncolumns = [{name = \"age\", kind = \"number\"}]\n");
    write("run.toml", "dataset = \"glyphs\"\nlearning_rate = 0.1\n");
    write("empty.csv", "");
    write("twice.csv", "age,sex,age,died\n50,f,50,no\n60,m,60,yes\n");
    write("gap.csv", "age,,died\n50,f,no\n60,m,yes\n");
    write("near.csv", "Age,sex,died\n50,f,no\n60,m,yes\n");
    write("unit.toml", std::string("unit = \"patient\"\nmax_rows = 2\n") + kSchema);
    write("latin.csv", "age,sex,died\n50,f\xe9,no\n60,m\xe9,yes\n");
    write("array.csv", npy_floats(1, {1.0f, 2.0f}));
    write("array.npy", npy_floats(1, {1.0f, 2.0f}));
    write("wide.csv", std::string("\xff\xfe\x61\0", 4));
    write("damaged.json", "{}");
    write("numbers.toml",
          "columns = [\n  {name = \"age\", kind = \"numeric\", min = 0, max = 9},\n"
          "  {name = \"sex\", kind = \"ignore\"},\n"
          "  {name = \"died\", kind = \"label\", values = [0, 1]},\n]\n");
    write("order.toml",
          "columns = [\n  {name = \"age\", kind = \"numeric\", min = 100, max = 0.5},\n]\n");
    for (const char* const folder : {"finished/private", "published/release", "begun/private"})
      fs::create_directories(place() / folder);
    write("finished/private/result.json", "{}");
    fs::create_directories(place() / "swept/private");
    write("swept/private/sweep.toml", "");
  }
  fs::path place() const { return folder_.path() / "here"; }
  void write(const char* name, const std::string& text) { write_text(place() / name, text); }
  Finished cudp(const Arguments& words) const {
    return CudpProcess(folder_, words, place()).wait();
  }
  /// Paths as they were typed.
  std::string without_place(std::string text) const {
    const std::string path = place().string() + "/";
    for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos;)
      text.erase(at, path.size());
    return text;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(place()))
      names.insert(entry.path().string());
    return names;
  }

  static constexpr const char* kSchema = R"(name = "p"
columns = [
  {name = "age", kind = "numeric", min = 0, max = 100},
  {name = "sex", kind = "categorical", values = ["f", "m"]},
  {name = "died", kind = "label", values = ["no", "yes"]},
]
)";
  TemporaryFolder folder_;
};

struct WrongInput {
  Arguments words;
  std::string sentence;  ///< behind "cudp: "
};

/// A training on a table, and more words of it.
Arguments table(const Arguments& more, const std::string& file = "p.csv",
                const std::string& schema = "p.toml") {
  return with({"train", "--dataset", file, "--schema", schema, "--epsilon", "1", "--delta", "1e-5",
               "--batch", "2", "--steps", "1"},
              more);
}
Arguments preset(Arguments more) {
  more.insert(more.begin(), {"train", "--preset", "glyphs-cnn"});
  return more;
}

const WrongInput kCases[] = {
    {{"trian", "--preset", "glyphs-cnn"},
     "expected a command as the first word, found 'trian'; the nearest is 'train'"},
    {{"verify2", "train", "--preset", "glyphs-cnn"},
     "expected a command as the first word, found 'verify2'; the nearest is 'verify'"},
    {{"--bogus", "train", "--preset", "glyphs-cnn"},
     "expected a command as the first word, found '--bogus'; flags follow the command, "
     "and cudp --help lists commands"},
    {{"help", "trian"},
     "expected a command as the first word, found 'trian'; the nearest is 'train'"},
    {{"halp"},
     "expected a command as the first word, found 'halp'; there are train, sweep, tune, schema, "
     "eval, "
     "predict, "
     "export, audit, verify, account, report, calibrate, reproduce, info and completion"},
    {{"--version", "train"},
     "--version: expected nothing after it, found 'train'; cudp COMMAND --help explains a command"},
    {{"train", "info"}, "train: expected one command, found a second, 'info'"},
    {preset({"glyphs"}),
     "train: expected flags, found the word 'glyphs'; --dataset glyphs if these are the data"},
    {{"report"}, "report: expected RUN, the folder of a run, found none"},
    {{"report", "--out", "pages"}, "report: expected RUN, the folder of a run, found none"},
    {{"schema", "table.csv", "--out", "nowhere/table.toml"},
     "--out nowhere/table.toml: expected a file in an existing folder, found no folder 'nowhere'"},
    {{"predict", "run", "--dataset", "table.csv", "--out", "nowhere/p.csv"},
     "--out nowhere/p.csv: expected a file in an existing folder, found no folder 'nowhere'"},
    {{"export", "run", "--to", "onnx", "--out", "nowhere/m.onnx"},
     "--out nowhere/m.onnx: expected a file in an existing folder, found no folder 'nowhere'"},
    {{"account", "--q", "0.1", "--sigma", "1", "--steps", "3", "--delta", "1e-5", "--curve",
      "nowhere/c.png"},
     "--curve nowhere/c.png: expected a file in an existing folder, found no folder 'nowhere'"},
    {{"account", "--q", "0.1", "--sigma", "1", "--steps", "3", "--delta", "1e-5", "--curve", "."},
     "--curve .: expected a file, found a folder"},
    {table({"--out", "p.csv/run"}),
     "--out p.csv/run: expected a folder, found the file 'p.csv' above it"},
    {{"sweep", "--preset", "glyphs-cnn", "--quiet", "--out", "p.csv/runs/new"},
     "--out p.csv/runs/new: expected a folder, found the file 'p.csv' above it"},
    {{"tune", "--preset", "glyphs-cnn", "--quiet", "--out", "p.csv/run"},
     "--out p.csv/run: expected a folder, found the file 'p.csv' above it"},
    {table({"--out", "finished"}),
     "--out finished: expected a new or an empty folder, found a finished run; type another "
     "folder"},
    {table({"--out", "published"}),
     "--out published: expected a new or an empty folder, found a finished run; type another "
     "folder"},
    {table({"--out", "begun"}),
     "--out begun: expected a new or an empty folder, found a run (--resume continues it)"},
    {{"sweep", "--preset", "glyphs-cnn", "--epsilon", "1", "2"},
     "sweep: expected a flag after --epsilon 1, found '2'; values of a list have commas between "
     "them: --epsilon 1,2"},
    {{"tune", "--clip", "0.1", "1", "--epsilon", "1"},
     "tune: expected a flag after --clip 0.1, found '1'; values of a list have commas between "
     "them: --clip 0.1,1"},
    {{"sweep", "--lr", "1", "missing.toml"},
     "missing.toml: cannot read: No such file or directory"},
    {preset({"--epsilon", "1", "2"}), "train: expected flags, found the word '2'"},
    {table({"--label", "died"}),
     "train: expected a known flag, found '--label'; a table's schema says which column is the "
     "label: kind = \"label\"; --labels FILE.npy has the labels of an array"},
    {table({"--target=died"}),
     "train: expected a known flag, found '--target'; a table's schema says which column is the "
     "target: kind = \"target\" for a number, \"label\" for classes (--target-bounds is for "
     "arrays)"},
    {table({}, "p.csv", "numbers.toml"),
     "numbers.toml, line 4: expected a list of texts for 'values', each in quotes, found the "
     "number 0"},
    {table({}, "p.csv", "order.toml"),
     "order.toml, line 2: expected 'min' below 'max', found 100 and 0.5"},
    {{"train"},
     "expected --dataset, --epsilon and --delta, found none of them; a preset has them all "
     "(--preset NAME)"},
    {{"train", "--dataset", "glyphs"},
     "expected --epsilon and --delta, found none of them; they may be in a file, too (--config "
     "FILE)"},
    {{"train", "--dataset", "p.csv"},
     "expected --epsilon, --delta and --schema, found none of them; they may be in a file, too "
     "(--config FILE)"},
    {preset({"--learning-rate", "0.1"}),
     "train: expected a known flag, found '--learning-rate'; the nearest is '--lr'"},
    {preset({"--eps", "1"}),
     "train: expected a known flag, found '--eps'; the nearest is '--epsilon'"},
    {preset({"--noise-multiplier", "1.1"}),
     "train: expected a known flag, found '--noise-multiplier'; the nearest is '--sigma'"},
    {preset({"--max_grad_norm", "1"}),
     "train: expected a known flag, found '--max_grad_norm'; the nearest is '--clip'"},
    {preset({"--batch-size=64"}),
     "train: expected a known flag, found '--batch-size'; the nearest is '--batch'"},
    {preset({"--epoch", "3"}),
     "train: expected a known flag, found '--epoch'; the nearest is '--epochs'"},
    {preset({"--random-state", "1"}),
     "train: expected a known flag, found '--random-state'; the nearest is '--seed'"},
    {preset({"--bogus"}),
     "train: expected a known flag, found '--bogus'; cudp train --help-all lists them"},
    {preset({"-e", "3"}),
     "train: expected a known flag, found '-e'; cudp train --help-all lists them"},
    {preset({"--epsilon"}), "--epsilon: expected a value, found none"},
    {table({"--device", "cpu", "--evaluate-with", "cudnn"}),
     "--evaluate-with: expected ours, since cuDNN needs a CUDA device and this run is made on the "
     "CPU, found cudnn"},
    {{"train", "--preset", "adult"},
     "--preset: expected a known preset, found 'adult'; the nearest is 'adult-logistic'"},
    {{"train", "--preset", "resnet"},
     "--preset: expected a known preset, found 'resnet'; there are adult-logistic, bank-logistic, "
     "cifar-cnn, cifar-hf, cifar-quantile, fashion-cnn, fashion-hf, glyphs-cnn, imdb-lstm, "
     "imdb-mean, imdb-rnn, mnist-adaclip, mnist-cnn, mnist-hf, mnist-quantile and sentences-lstm"},
    {table({"--model", "logreg"}),
     "--model: expected a known model or a .toml file, found 'logreg'; the nearest is 'logistic'"},
    {table({"--model", "alexnet"}),
     "--model: expected a known model or a .toml file, found 'alexnet'; there are cifar-cnn, cnn, "
     "imdb-lstm, imdb-mean, imdb-rnn, linear, logistic, mlp, scatter-cifar-cnn, scatter-cnn, "
     "scatter-linear, sentences-lstm and svm"},
    {table({"--method", "dpsdg"}),
     "--method: expected one of dpsgd, dpsgd-ts, dpsgd-decay, dpsgd-quantile, adp-sgd, adaclip, "
     "dpis, sgd-ma, sgd-adv, norm-bound, dp-agd, outpert, objpert, privgene, sgd, found \"dpsdg\""},
    {table({"--optimizer", "adma"}),
     "--optimizer: expected one of sgd, momentum, nesterov, adam, adamw, found \"adma\""},
    {{"train", "--dataset", "p.csv", "--schema", "p.toml", "--epsilon", "abc", "--delta", "1e-5"},
     "--epsilon: expected a number > 0 (1e-30 to 1e30), found \"abc\""},
    {{"train", "--dataset", "p.csv", "--schema", "p.toml", "--epsilon", "-1", "--delta", "1e-5"},
     "--epsilon: expected a number > 0 (1e-30 to 1e30), found -1.0"},
    {{"train", "--dataset", "p.csv", "--schema", "p.toml", "--epsilon", "1", "--delta", "2"},
     "--delta: expected a number in (0, 1), found 2.0"},
    {{"train", "--dataset", "p.csv", "--schema", "p.toml", "--sigma", "1", "--delta", "1e-5"},
     "--sigma needs --epsilon too: the number of training examples is private, and the epsilon "
     "that follows from sigma would reveal it. Give --epsilon, or --size-is-public if the number "
     "is public"},
    {table({"--epochs", "3"}), "--steps: expected either epochs or steps, found both"},
    {table({"--threads", "many"}),
     "--threads: expected a whole number of 0 to 4096, found \"many\""},
    {table({"--size-is-public", "--batch", "3"}),
     "--batch: expected at most the 2 training examples, found 3"},
    {table({"--out", "."}), "--out .: expected a new or an empty folder, found something else"},
    {table({"--metrics-file", "begun"}),
     "--metrics-file: expected a file in a folder that exists, found begun"},
    {{"verify", "swept"},
     "swept: expected a run folder with a certificate, or its release folder, found a sweep, whose "
     "runs are in swept/runs"},
    {{"account", "swept"},
     "swept: expected a run's folder, its release folder or a privacy.json, found a sweep, whose "
     "runs are in swept/runs"},
    {{"report", "swept"},
     "swept: expected a run's folder or its release folder, found a sweep, whose runs are in "
     "swept/runs"},
    {{"eval", "swept", "--dataset", "p.csv"},
     "swept: expected a run folder with a released model, its release folder or a .safetensors "
     "file, found a sweep, whose runs are in swept/runs"},
    {{"train", "--resume", "swept"},
     "--resume swept: expected a run folder, found a sweep, whose runs are in swept/runs"},
    {{"train", "--resume", "nowhere"}, "--resume nowhere: expected a run folder, found none"},
    {{"train", "--config", "nowhere.toml"},
     "nowhere.toml: expected a readable TOML file, found none"},
    {{"train", "--config", "run.toml"},
     "run.toml, line 2, learning_rate: expected a known key, found 'learning_rate'; the nearest is "
     "'lr'"},
    {table({}, "nowhere.csv"),
     "dataset 'nowhere.csv': expected glyphs, sentences, mnist, fashion-mnist, cifar-10, adult, "
     "bank, ipums-br, imdb, or the path of a folder, a table, or a .npy or .npz file, found no "
     "such "
     "file or folder"},
    {table({}, "census"),
     "dataset 'census': expected glyphs, sentences, mnist, fashion-mnist, cifar-10, adult, bank, "
     "ipums-br, imdb, or the path of a folder, a table, or a .npy or .npz file, found no such file "
     "or folder; the nearest is 'adult'"},
    {table({}, "semicolon.csv"),
     "semicolon.csv, line 1: expected 3 names in the header row, found one; the line has 2 ';': "
     "perhaps delimiter = \";\" in its schema, or cudp schema --delimiter \";\""},
    {table({}, "unknown.csv"),
     "unknown.csv, line 1: expected only columns the schema names, found 'weight'"},
    {table({}, "short.csv"), "short.csv, line 3: expected 3 cells, found 2"},
    {table({}, "word.csv"),
     "word.csv, line 3, column 'age': expected a finite number, found 'old'"},
    {table({}, "value.csv"),
     "value.csv, line 3, column 'sex': expected one of the schema's 2 values, found 'x'"},
    {table({}, "label.csv"),
     "label.csv, line 3, column 'died': expected one of the schema's 2 classes, found 'maybe'"},
    {table({}, "twice.csv"), "twice.csv, line 1: expected each column once, found 'age' twice"},
    {table({}, "near.csv"),
     "near.csv, line 1: expected a column 'age', found none of that name in the header row; the "
     "nearest is 'Age'"},
    {table({}, "latin.csv"),
     "latin.csv: 2 errors\n"
     "  line 2, column 'sex': expected one of the schema's 2 values, found 'f?', which is not "
     "UTF-8 "
     "but perhaps Latin-1; iconv -f LATIN1 -t UTF-8 FILE > NEW makes it UTF-8\n"
     "  line 3, column 'sex': expected one of the schema's 2 values, found 'm?', which is not "
     "UTF-8 "
     "but perhaps Latin-1"},
    {{"schema", "twice.csv"},
     "twice.csv, line 1: expected a different name for every column, found 'age' twice"},
    {{"schema", "gap.csv"},
     "gap.csv, line 1: expected a different name for every column, found none for column 2"},
    {{"schema", "p.csv", "--label", "diedd"},
     "p.csv: expected a column 'diedd', found none of that name in the header row; the nearest is "
     "'died'"},
    {table({}, "array.csv"),
     "array.csv: expected a table of text, found a NumPy array; let its name end in .npy"},
    {table({}, "wide.csv"),
     "wide.csv: expected a table of text, found UTF-16 text; iconv -f UTF-16 -t UTF-8 FILE > NEW "
     "makes it UTF-8"},
    {table({"--malformed", "missing"}),
     "p.toml, column 'age': expected a 'fill' for --malformed missing: what a cell that cannot be "
     "read stands for, found none"},
    {{"train", "--dataset", "array.npy", "--epsilon", "1", "--delta", "1e-5"},
     "array.npy: expected --classes N, the number of classes, which is never read from labels "
     "since they are private (or --target-bounds LOW,HIGH for a number to predict), found none"},
    {{"train", "--dataset", "array.npy", "--classes", "2", "--epsilon", "1", "--delta", "1e-5"},
     "array.npy: expected --labels FILE.npy, or a .npz file with x and y, found no labels"},
    {{"train", "--dataset", "array.npy", "--classes", "2", "--input-shape", "28", "--epsilon", "1",
      "--delta", "1e-5"},
     "--input-shape: expected the shape of one example, CxHxW or HxW, of 1 to 1048576 numbers, "
     "such "
     "as 3x32x32, found '28'"},
    {{"train", "--dataset", "p.csv", "--schema", "p.toml", "--target-bounds", "0,9", "--epsilon",
      "1", "--delta", "1e-5"},
     "--input-shape, --channels-last, --arrays, --test-arrays and --target-bounds: expected with a "
     ".npy or .npz file only, found with p.csv"},
    {{"schema", "semicolon.csv"},
     "semicolon.csv, line 1: expected at least two columns, found one; the line has 2 ';': perhaps "
     "delimiter = \";\" in its schema, or cudp schema --delimiter \";\""},
    {{"schema", "p.csv", "--out", "p.toml"},
     "p.toml: expected a name that no file has yet, found one"},
    {table({}, "empty.csv"), "empty.csv: expected a header row, found none"},
    {table({}, "p.csv", "nowhere.toml"),
     "nowhere.toml: expected a file that can be read, found No such file or directory"},
    {table({}, "p.csv", "kind.toml"),
     "kind.toml, line 2: expected kind numeric, date, categorical, text, label, target, id or "
     "ignore, "
     "found 'number'"},
    {table({}, "p.csv", "bounds.toml"),
     "bounds.toml: 1 column needs public bounds, categories or classes: 'age'; state what is known "
     "in public, as in kind = \"numeric\", min = 0, max = 120 (--accept-private-bounds reads them "
     "from the private rows in place of that, outside of what epsilon covers: the run is then not "
     "for release)"},
    {table({"--test-data", "p.csv"}),
     "p.csv: expected test rows in a file of their own, found the file of the training rows, "
     "p.csv"},
    {{"eval"}, "eval: expected run_dir, found none"},
    {{"eval", "nowhere", "--dataset", "p.csv", "--schema", "p.toml"},
     "nowhere: expected a run folder with a released model, its release folder or a .safetensors "
     "file, found none"},
    {{"predict"}, "predict: expected model, found none"},
    {{"predict", "nowhere", "--dataset", "p.csv"}, "predict: expected --out FILE, found none"},
    {{"predict", "nowhere", "--dataset", "p.csv", "--out", "predictions.csv"},
     "nowhere: expected a run folder with a released model, its release folder or a .safetensors "
     "file, found none"},
    {{"predict", "damaged.json", "--dataset", "p.csv", "--out", "predictions.csv"},
     "damaged.json, byte 0: expected an 8-byte header length, found 2 bytes"},
    {{"predict", "nowhere", "--input", "p.csv"},
     "predict: expected a known flag, found '--input'; the nearest is '--dataset'"},
    {{"eval", "nowhere", "--dataset", "p.csv", "--threshold", "2"},
     "--threshold: expected a number in [0, 1], found 2.0"},
    {{"schema"}, "schema: expected table, found none"},
    {{"schema", "nowhere.csv"},
     "nowhere.csv: expected a file that can be read, found No such file or directory"},
    {{"verify", "nowhere"},
     "nowhere: expected a run folder with a certificate, or its release folder, found none"},
    {{"account"},
     "account: expected --q (or --examples and --batch), --sigma, --steps (or --epochs) and one of "
     "--delta and --epsilon, found none of them"},
    {{"account", "nowhere"},
     "nowhere: expected a run's folder, its release folder or a privacy.json, found none"},
    {{"account", "damaged.json"},
     "damaged.json: expected a certificate of cudp, found another file"},
    {{"account", "--sigma", "1", "--sigma", "2"}, "--sigma: expected it once, found it 2 times"},
    {{"account", "--sigma", "1", "--steps", "3", "--delta", "1e-5", "--q", "0.1", "--examples",
      "10", "--batch", "1"},
     "--q: expected no value with --examples and --batch, found one"},
    {{"calibrate"},
     "calibrate: expected --q (or --examples and --batch), --steps (or --epochs), --epsilon and "
     "--delta, found none of them"},
    {{"calibrate", "--epsilon", "1", "--delta", "1e-5", "--examples", "1000", "--batch", "10"},
     "calibrate: expected --epochs with --examples and --batch, or --steps, found neither"},
    {{"account", "--sigma", "1", "--delta", "1e-5", "--examples", "1000", "--batch", "10"},
     "account: expected --epochs with --examples and --batch, or --steps, found neither"},
    {{"calibrate", "--epsilon", "1", "--delta", "1e-5", "--q", "2", "--steps", "3"},
     "--q: expected a number in [0, 1], found 2.0"},
    {{"audit", "--canarys", "3"},
     "audit: expected a known flag, found '--canarys'; the nearest is '--canary'"},
    {{"reproduce", "dpis-tabel3"},
     "reproduce: expected a known table, found 'dpis-tabel3'; the nearest is 'dpis-table3'"},
    {{"info", "bogus"}, "info: expected flags, found the word 'bogus'"},
};

TEST_F(WrongInputs, AreAnsweredInOneSentenceAndNothingIsWritten) {
  const std::set<std::string> before = files();
  EXPECT_GE(std::size(kCases), 30u);
  for (const WrongInput& c : kCases) {
    std::string typed = "cudp";
    for (const std::string& word : c.words) typed += " " + word;
    const Finished f = cudp(c.words);
    EXPECT_EQ(f.exit, 2) << typed;
    EXPECT_EQ(without_place(f.err), "cudp: " + c.sentence + "\n") << typed;
    EXPECT_EQ(f.out, "") << typed;
    EXPECT_EQ(files(), before) << typed;
  }
}

}  // namespace
}  // namespace cudp
