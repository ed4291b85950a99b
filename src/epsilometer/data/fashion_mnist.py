"""Fashion-MNIST: 70,000 pictures of clothes, 28 × 28 pixels (Xiao, Rasul, Vollgraf 2017)."""

from epsilometer.data.idx import IdxImages

FASHION_MNIST = IdxImages(
    name="fashion-mnist",
    class_names=(
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
    address="https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    md5={
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    places=("/usr/share/datasets/fashion-mnist",),  # Debian: dataset-fashion-mnist
)  # fmt: skip
